"""Repeats an attempt until the store is available; the outage is logged here and nowhere else."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import structlog

from edge.errors import Defect, EdgeError, Unavailable
from edge.ticks import next_tick

logger = structlog.get_logger(__name__)

RETRY_INTERVAL_S = 1.0
_STABLE_INTERVALS = 5
"""The end of a service that ran for so many intervals is a new outage."""

_T = TypeVar("_T")


async def retry_while_unavailable(
    task: str, attempt: Callable[[], Awaitable[_T]], interval_s: float = RETRY_INTERVAL_S
) -> _T:
    """Repeat an attempt until it does not raise Unavailable; return its result."""
    reported = False
    while True:
        try:
            result = await attempt()
        except Unavailable as error:
            if not reported:
                logger.warning("store unavailable, retrying", task=task, reason=error.message)
            reported = True
            await asyncio.sleep(interval_s)
        else:
            if reported:
                logger.info("store available again", task=task)
            return result


async def poll_store(task: str, attempt: Callable[[], Awaitable[None]], interval_s: float) -> None:
    """Run an attempt at once and at each tick of the interval, until cancelled.

    An unavailable store leaves attempts out. A defect is logged once, until an attempt succeeds again.
    Other errors with advice for a person end it.
    """
    reported, is_defect_reported = False, False
    while True:
        try:
            await attempt()
        except Unavailable as error:
            if not reported:
                logger.warning("store unavailable, retrying", task=task, reason=error.message)
            reported = True
        except EdgeError:
            raise
        except Exception:  # the jobs go on: systemd would start the gateway again, into the same defect
            if not is_defect_reported:
                logger.exception("periodic task failed", task=task)
            is_defect_reported = True
        else:
            if reported:
                logger.info("store available again", task=task)
            reported, is_defect_reported = False, False
        await next_tick(interval_s)


@contextmanager
def renewal(lease: str) -> Iterator[None]:
    """Raise Defect for an unforeseen error of the block, which renews a lease: `poll_store` ends then.

    Work that goes on without its lease would be done twice.
    """
    try:
        yield
    except EdgeError:
        raise
    except Exception as error:  # whatever it is: the lease is not renewed
        raise Defect(f"{lease} cannot be renewed: {error!r}") from error


async def restart_on_outage(
    task: str, service: Callable[[], Awaitable[None]], interval_s: float = RETRY_INTERVAL_S
) -> None:
    """Run a service until cancelled; restart it after each outage of the store. One outage is logged once."""
    reported = False
    while True:
        began = time.monotonic()
        try:
            await service()
        except Unavailable as error:
            if not reported or time.monotonic() - began > _STABLE_INTERVALS * interval_s:
                logger.warning("store unavailable, retrying", task=task, reason=error.message)
            reported = True
            await asyncio.sleep(interval_s)
