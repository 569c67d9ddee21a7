"""Documents that another program wrote do not stop their readers."""

import pytest

from edge.cli.terminal.table import local_time
from edge.features.fleet import keys as fleet_keys
from edge.features.fleet import store as fleet
from edge.store import components, logins
from edge.store.client import Store

NESTED = '{"other":' + "[" * 100_000


async def test_nested_document_is_skipped(store: Store) -> None:
    keys = store.keys
    for key in (
        fleet_keys.fleet_keys(keys),
        fleet_keys.fleet_executing(keys, "gw-1"),
        fleet_keys.fleet_results(keys, "1"),
        keys.discovery_components(),
    ):
        await store.execute("HSET", key, "1", NESTED)
    await store.execute("SET", keys.session("1"), NESTED)
    assert await fleet.load_keys(store) == {}
    assert await fleet.load_executing(store, "gw-1") == {}
    assert await fleet.load_results(store, "1") == {}
    assert await components.load_all(store) == {}
    assert await logins.load_sessions(store, ["1"]) == {}


@pytest.mark.parametrize(("milliseconds", "year"), [(10**18, "9999"), (-(10**18), "1-"), (10**400, "9999")])
def test_time_out_of_range_is_shown_as_the_first_or_last(milliseconds: int, year: str) -> None:
    """A component writes its heartbeats itself: one instant must not fail the list of all."""
    assert local_time(milliseconds).lstrip("0").startswith(year)
