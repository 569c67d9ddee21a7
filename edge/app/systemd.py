"""Notifies systemd of readiness and status, and feeds its watchdog from the event loop.

`health.py` and `served_summary.py` compose the status line.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

import structlog

logger = structlog.get_logger(__name__)

Notify = Callable[[str], None]

_SEND_WITHIN_S = 0.02
"""The loop waits so long at most; systemd reads its socket at once."""


def notifier() -> Notify:
    """Return a function that sends a message to systemd (sd_notify(3)); without systemd it does nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    return _Notifier(address) if address else discard_status


class _Notifier:
    """Sends messages to systemd; a socket that cannot be written is logged once and does not stop the gateway.

    The systemd library blocks the interpreter without a time limit while the service manager does not read.
    """

    def __init__(self, address: str) -> None:
        # A name in the abstract namespace begins with @ (sd_notify(3)).
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._has_failed = False

    def __call__(self, message: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
                opened.settimeout(_SEND_WITHIN_S)
                opened.sendto(message.encode(), self._address)
        except OSError as error:
            if not self._has_failed:
                advice = "Unset NOTIFY_SOCKET outside a systemd unit, or permit this user to write to it."
                reason = f"{os.environ.get('NOTIFY_SOCKET')}: {error.strerror or 'it is not read'}"
                logger.warning("systemd notification failed", reason=reason, advice=advice)
            self._has_failed = True


def discard_status(_: str) -> None:
    """Discard a status message, as outside systemd."""


async def feed_watchdog(
    notify: Notify, silent: Callable[[], Sequence[str]], rest: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Feed the watchdog of systemd from the event loop, three times per interval; systemd restarts a hanging loop.

    `silent` returns the critical tasks without progress; while there are any, the watchdog is not fed.
    """
    interval_us = int(os.environ.get("WATCHDOG_USEC", "0"))
    while interval_us:
        if hanging := silent():
            logger.error("watchdog not fed", reason="critical tasks make no progress", tasks=hanging)
        else:
            notify("WATCHDOG=1")
        await rest(interval_us / 3_000_000)
