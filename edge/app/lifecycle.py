"""Starts the gateway in order, stops it in reverse within a deadline."""

import asyncio
import contextlib
import gc
import signal
from collections.abc import Iterator

import structlog

from edge import __version__
from edge.app.systemd import notifier
from edge.app.wiring import open_gateway
from edge.config import Settings
from edge.errors import Unavailable, unwrap_group
from edge.maintenance.clock import Clock, read_clock

logger = structlog.get_logger(__name__)

_STOP_WITHIN_S = 10.0


async def serve(settings: Settings) -> None:
    """Run the gateway until SIGTERM or SIGINT; a second signal ends the process at once.

    Raises what keeps it from running: SettingsError, Unavailable (also when it does not stop in time).
    """
    notify = notifier()
    stop = asyncio.Event()
    limit = asyncio.timeout(None)
    try:
        async with limit:
            with _signals(stop, limit), unwrap_group():
                logger.info("starting", gateway=settings.gateway.name, version=__version__)
                _log_clock_state()
                async with open_gateway(settings, notify) as summary:
                    # What is there now stays to the end: from here on garbage is looked for in what comes.
                    gc.freeze()
                    gc.enable()
                    notify(f"READY=1\nSTATUS={summary}")
                    logger.info("ready", gateway=settings.gateway.name, serving=summary)
                    await stop.wait()
                    notify("STOPPING=1\nSTATUS=stopping")
    except TimeoutError as error:
        if not limit.expired():
            raise
        message = f"the gateway did not stop within {_STOP_WITHIN_S:.0f} s"
        raise Unavailable(message, "Nothing is lost: the next start goes on where this one ended.") from error
    logger.info("stopped", gateway=settings.gateway.name)


def _log_clock_state() -> None:
    """A gateway without network has to start, too: nothing waits for the clock, and who reads the log knows of it."""
    match read_clock():
        case Clock.SYNCHRONISED:
            return
        case Clock.UNSYNCHRONISED:
            advice = "Until it is, each record bears clock=unsynchronised. Look at it with: timedatectl timesync-status"
            logger.warning("the clock is not synchronised: instants may be wrong", advice=advice)
        case Clock.UNKNOWN:
            logger.info("it cannot be told whether the clock is synchronised")


@contextlib.contextmanager
def _signals(stop: asyncio.Event, limit: asyncio.Timeout) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def begin_to_stop(number: signal.Signals) -> None:
        for each in before:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        logger.info("stopping", signal=number.name)
        stop.set()
        # From the signal on, so that a start that hangs cannot hold up the stop.
        limit.reschedule(loop.time() + _STOP_WITHIN_S)

    for number in before:
        loop.add_signal_handler(number, begin_to_stop, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
