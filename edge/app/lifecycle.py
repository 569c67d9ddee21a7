"""Starts the gateway in order, stops it in reverse within a deadline."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator

import structlog

from edge.app.systemd import keep_watchdog, notifier
from edge.app.wiring import open_gateway
from edge.config import Settings
from edge.errors import EdgeError, Unavailable
from edge.links.background import beside

logger = structlog.get_logger(__name__)

_STOP_WITHIN_S = 10.0


async def serve(settings: Settings) -> None:
    """Run the gateway until SIGTERM or SIGINT; a second signal ends the process at once.

    Raises what keeps it from running: SettingsError, Unavailable (also when it does not stop in time).
    """
    notify = notifier()
    stop = asyncio.Event()
    with _signals(stop), _told_by_name():
        try:
            async with (
                asyncio.timeout(None) as limit,
                open_gateway(settings) as summary,
                beside(keep_watchdog(notify), "watchdog"),
            ):
                notify(f"READY=1\nSTATUS={summary}")
                logger.info("ready", gateway=settings.gateway.name, serving=summary)
                await stop.wait()
                notify("STOPPING=1\nSTATUS=stopping")
                limit.reschedule(asyncio.get_running_loop().time() + _STOP_WITHIN_S)
        except TimeoutError as error:
            message = f"the gateway did not stop within {_STOP_WITHIN_S:.0f} s"
            raise Unavailable(message, "Nothing is lost: the next start goes on where this one ended.") from error
    logger.info("stopped", gateway=settings.gateway.name)


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def begin_to_stop(number: signal.Signals) -> None:
        logger.info("stopping", signal=number.name)
        stop.set()
        loop.remove_signal_handler(number)

    wanted = (signal.SIGTERM, signal.SIGINT)
    for number in wanted:
        loop.add_signal_handler(number, begin_to_stop, number)
    try:
        yield
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _told_by_name() -> Iterator[None]:
    """Bring out the error that ended a task: people are told by its message, not by the group around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        expected = group.subgroup(EdgeError)
        if expected is None:
            raise
        first: BaseException = expected
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from group
