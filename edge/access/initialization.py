"""Fills an empty store once, whichever of several instances begins; an interrupted filling is continued."""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, TypeAlias

import structlog

from edge.access.locks import LEASE_MS, hold_lock
from edge.foundation.text import Text
from edge.model.lock import LockKind
from edge.store import initialization
from edge.store.client import Store
from edge.store.commit import Committed
from edge.store.initialization import FillState

logger = structlog.get_logger(__name__)

OBJECT: Final = "station.d"
"""The object of the lock of kind `station` that is held while station files are applied."""
REASON: Final = Text.of("station files are applied")
_WAIT_S = 120.0

Fill: TypeAlias = Callable[[], Awaitable[None]]
"""Writes what is missing in the store: the same when it runs again after a crash in the middle."""


class FillOutcome(Enum):
    """The ways in which a store came to be filled."""

    FILLED_HERE = "filled here"
    FILLED_BEFORE = "filled before"
    IN_USE = "in use before"
    """It held station settings without a mark: nothing was written."""


async def fill_once(
    store: Store,
    owner: str,
    is_empty: Callable[[], Awaitable[bool]],
    prepare: Callable[[], Awaitable[Fill]],
    *,
    wait_s: float = _WAIT_S,
    lease_ms: int = LEASE_MS,
) -> FillOutcome:
    """Fill an empty store, unless another instance has done it; wait while another instance does it.

    `prepare` returns the filling; while it raises, nothing is written. Raises Refused(`locked`) when the lock is not
    free within `wait_s` seconds, SettingsError for an unknown mark.
    """
    if await initialization.load_state(store) is FillState.FILLED:
        return FillOutcome.FILLED_BEFORE
    async with hold_lock(store, LockKind.STATION, OBJECT, owner, REASON, wait_s=wait_s, lease_ms=lease_ms):
        state = await initialization.load_state(store)
        if state is FillState.FILLED:
            return FillOutcome.FILLED_BEFORE
        if state is FillState.ABSENT and not await is_empty():
            await store.commit(initialization.skip(store.keys))
            return FillOutcome.IN_USE
        fill = await prepare()
        if state is FillState.ABSENT:
            await store.commit(initialization.begin(store.keys))
        else:
            logger.warning("filling of the store continued", owner=owner)
        await fill()
        is_ours = isinstance(await store.commit(initialization.end(store.keys)), Committed)
        return FillOutcome.FILLED_HERE if is_ours else FillOutcome.FILLED_BEFORE
