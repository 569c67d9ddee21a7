"""Tells systemd that we are ready, how we are, and that the event loop still turns."""

import asyncio
import os
from collections.abc import Callable, Sequence

import structlog

logger = structlog.get_logger(__name__)

Notify = Callable[[str], None]


def notifier() -> Notify:
    """Give what sends a message to systemd (sd_notify(3)); it does nothing where systemd does not listen."""
    if not os.environ.get("NOTIFY_SOCKET"):
        return discard_status
    try:
        from systemd.daemon import notify  # noqa: PLC0415  an extra: Debian's package brings it
    except ImportError:
        logger.warning(
            "systemd waits for us, but systemd-python is not installed", advice="Install microdcs-edge[systemd]."
        )
        return discard_status
    return notify  # type: ignore[no-any-return]  # the package has no types


def discard_status(_: str) -> None:
    """Outside systemd nobody wants to know."""


async def feed_watchdog(notify: Notify, silent: Callable[[], Sequence[str]]) -> None:
    """Feed systemd's watchdog from the event loop, three times an interval; a loop that hangs is restarted.

    So is a gateway one of whose critical tasks hangs: `silent` names them.
    """
    interval_us = int(os.environ.get("WATCHDOG_USEC", "0"))
    while interval_us:
        if hanging := silent():
            logger.error("tasks hang, systemd is to restart us", tasks=hanging)
        else:
            notify("WATCHDOG=1")
        await asyncio.sleep(interval_us / 3_000_000)
