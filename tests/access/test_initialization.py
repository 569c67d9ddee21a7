"""An empty store is filled once: by one of several instances, or by the next one after a crash."""

import asyncio

import pytest

from edge.access.initialization import OBJECT, Fill, FillOutcome, fill_once
from edge.access.locks import hold_lock
from edge.foundation.errors import Refused, SettingsError
from edge.model.lock import LockKind
from edge.store import initialization
from edge.store.client import Store
from edge.store.commit import Stale
from edge.store.initialization import FillState


class Filling:
    """Counts how often a store is filled."""

    def __init__(self, *, empty: bool = True, faulty: bool = False) -> None:
        self.began = self.ended = 0
        self._empty = empty
        self._faulty = faulty

    async def is_empty(self) -> bool:
        return self._empty

    async def prepare(self) -> Fill:
        if self._faulty:
            raise SettingsError(["rules/a.json: not JSON"])
        return self._fill

    async def _fill(self) -> None:
        self.began += 1
        await asyncio.sleep(0)
        self.ended += 1


async def fill(store: Store, filling: Filling, owner: str = "gw") -> FillOutcome:
    return await fill_once(store, owner, filling.is_empty, filling.prepare)


async def test_one_of_several_instances_fills_an_empty_store(store: Store) -> None:
    filling = Filling()
    outcomes = await asyncio.gather(*(fill(store, filling, f"gw{number}") for number in range(5)))
    assert sorted(outcome.name for outcome in outcomes) == ["FILLED_BEFORE"] * 4 + ["FILLED_HERE"]
    assert (filling.began, filling.ended) == (1, 1)
    assert await initialization.load_state(store) is FillState.FILLED
    assert await fill(store, filling) is FillOutcome.FILLED_BEFORE


async def test_interrupted_filling_is_repeated(store: Store) -> None:
    await store.commit(initialization.begin(store.keys))
    # What the killed one wrote: the store is not empty any more.
    filling = Filling(empty=False)
    assert await fill(store, filling) is FillOutcome.FILLED_HERE
    assert filling.ended == 1


async def test_store_in_use_without_a_mark_is_not_filled(store: Store) -> None:
    filling = Filling(empty=False)
    assert await fill(store, filling) is FillOutcome.IN_USE
    assert filling.began == 0
    assert await initialization.load_state(store) is FillState.FILLED


async def test_faulty_files_leave_an_empty_store_without_a_mark(store: Store) -> None:
    with pytest.raises(SettingsError):
        await fill(store, Filling(faulty=True))
    assert await initialization.load_state(store) is FillState.ABSENT
    assert await fill(store, Filling()) is FillOutcome.FILLED_HERE


async def test_filling_without_the_lock_is_refused_with_advice(store: Store) -> None:
    async with hold_lock(store, LockKind.STATION, OBJECT, "anna", "looks at it"):
        filling = Filling()
        with pytest.raises(Refused, match="held by 'anna'"):
            await fill_once(store, "gw", filling.is_empty, filling.prepare, wait_s=0.01)


async def test_process_resumed_after_the_filling_writes_nothing(store: Store) -> None:
    await store.commit(initialization.begin(store.keys))
    await store.commit(initialization.end(store.keys))
    key = store.keys.initialized()
    assert await store.commit(initialization.while_filling(store.keys)) == Stale(key)
    assert await store.commit(initialization.begin(store.keys)) == Stale(key)
