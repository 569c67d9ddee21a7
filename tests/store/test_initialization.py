"""The mark of a filled store has three values; any other is refused with advice."""

import pytest

from edge.foundation.errors import SettingsError
from edge.store import initialization
from edge.store.client import Store
from edge.store.initialization import FillState


async def test_fill_state_changes_from_absent_to_filling_to_filled(store: Store) -> None:
    fill_states = [await initialization.load_state(store)]
    for commit in (initialization.begin, initialization.end):
        await store.commit(commit(store.keys))
        fill_states.append(await initialization.load_state(store))
    assert fill_states == [FillState.ABSENT, FillState.FILLING, FillState.FILLED]


@pytest.mark.parametrize("text", ["", "2", "00", "true"])
async def test_other_value_is_refused_with_its_key(store: Store, text: str) -> None:
    await store.execute("SET", store.keys.initialized(), text)
    with pytest.raises(SettingsError, match=f"{store.keys.initialized()} of the store holds {text!r}") as caught:
        await initialization.load_state(store)
    assert f"redis-cli DEL {store.keys.initialized()}" in caught.value.advice
