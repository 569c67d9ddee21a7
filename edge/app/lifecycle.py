"""Starts the gateway in order and stops it in reverse order within a deadline."""

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

    Raises SettingsError, or Unavailable (also when the stop takes too long).
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
                    # Objects created so far live until the end: exclude them from garbage collection.
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
        raise Unavailable(message, "No data is lost. The next start continues from the stored state.") from error
    logger.info("stopped", gateway=settings.gateway.name)


def _log_clock_state() -> None:
    """Log the state of the clock; the start never waits for it, because a gateway without network must start too."""
    match read_clock():
        case Clock.SYNCHRONISED:
            return
        case Clock.UNSYNCHRONISED:
            advice = "Until then each record has clock=unsynchronised. Check it with: timedatectl timesync-status"
            logger.warning("clock not synchronised", effect="time stamps may be wrong", advice=advice)
        case Clock.UNKNOWN:
            logger.info("clock state unknown")


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
        # The deadline runs from the signal on, so that a hanging start cannot delay the stop.
        limit.reschedule(loop.time() + _STOP_WITHIN_S)

    for number in before:
        loop.add_signal_handler(number, begin_to_stop, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
