"""Keeps a store open for a long-lived visitor: a store that is over is followed by another one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from edge.config import RedisSettings
from edge.foundation.backoff import Backoff
from edge.foundation.errors import SettingsError, Unavailable
from edge.store.client import Store
from edge.store.opening import open_store

logger = structlog.get_logger(__name__)

REOPEN_S: Final = (0.1, 2.0)
"""The shortest and the longest delay between two attempts to open a store again."""


async def serve_stores(
    settings: RedisSettings, serve: Callable[[Store], Awaitable[None]], stopping: asyncio.Event
) -> None:
    """Open a store and serve with it until `serve` returns; when the store is over, open it again and serve again.

    While another one cannot be opened, retry until `stopping`. Raises SettingsError and Unavailable when the first one
    cannot be opened.

        await serve_stores(settings.redis, lambda store: FlowWorker(store, …).run(), stopping)
    """
    backoff: Backoff | None = None
    was_open = False
    while True:
        try:
            async with open_store(settings, consumer=None) as store:
                backoff, was_open = None, True
                if not await _is_over_first(store, serve):
                    return
        except (SettingsError, Unavailable) as error:
            # A store that was open may be lost again before the work has begun.
            if backoff is None and not (was_open and isinstance(error, Unavailable)):
                raise
            logger.warning("store not opened again, retrying", reason=error.message, advice=error.advice)
        backoff = backoff or Backoff(*REOPEN_S, stable=REOPEN_S[1])
        await backoff.pause(stopping)
        if stopping.is_set():
            return


async def _is_over_first(store: Store, serve: Callable[[Store], Awaitable[None]]) -> bool:
    """Return whether the store was over before `serve` had ended, which is cancelled then."""
    serving, over = asyncio.ensure_future(serve(store)), asyncio.ensure_future(store.over.wait())
    try:
        await asyncio.wait((serving, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
        serving.cancel()
        await asyncio.wait((serving, over))
    if store.over.is_set():
        return True
    await serving
    return False
