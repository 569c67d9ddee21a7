"""`edge fleet` shows what the components last reported, and forgets those that are gone."""

import json
import time

from edge.model.component import Component, PluginState
from edge.store import components
from edge.store.client import Store
from tests.cli.calling import Edge


async def put(store: Store, id: str, *, seen_s: int, **others: object) -> None:
    component = Component(id=id, kind="gateway", version="1.2.3", started=1, **others)  # type: ignore[arg-type]
    plugin = PluginState(name="wrench", kind="equipment ijt", state="disconnected", problem="no route")
    keys = store.keys
    await store.commit(components.put(keys, component))
    await store.commit(components.put_plugins(keys, id, (plugin,)))
    await store.commit(components.touch(keys, id, seen_s))
    await store.commit(components.take(keys, id, "token"))


async def test_list_shows_healthy_troubled_and_absent_components(edge: Edge, store: Store) -> None:
    assert (await edge("fleet", "list")).output == "no components\n"
    now = int(time.time())
    await put(store, "gw-1", seen_s=now, jobs=2, alarms=1, certificate_expiry="2031-11-21", labels={"line": "3"})
    await put(store, "gw-2", seen_s=now, problems="broker unavailable: MES")
    await put(store, "gw-3", seen_s=now - 100)
    printed = (await edge("fleet", "list")).output
    assert "healthy" in printed
    assert "line=3" in printed
    listed = {each["id"]: each for each in json.loads((await edge("fleet", "list", "--json")).output)}
    assert [each["state"][:10] for each in listed.values()] == ["healthy", "broker una", "away since"]
    assert listed["gw-1"]["labels"] == {"line": "3"}


async def test_show_has_equipment_with_its_problem(edge: Edge, store: Store) -> None:
    await put(store, "gw-1", seen_s=int(time.time()), drift="2 rules differ", scopes=("station-1",), jobs=0)
    printed = (await edge("fleet", "show", "gw-1")).output
    assert "equipment ijt wrench: disconnected, no route" in printed
    assert "configuration drift: 2 rules differ" in printed
    assert "there is no component 'gw-9'" in (await edge("fleet", "show", "gw-9")).output


async def test_forgotten_components_leave_the_list(edge: Edge, store: Store) -> None:
    await put(store, "gw-1", seen_s=int(time.time()))
    assert (await edge("fleet", "forget")).exit_code == 2
    assert (await edge("fleet", "forget", "gw-1", "--after-days", "7")).exit_code == 0
    assert json.loads((await edge("fleet", "list", "--json")).output) == []
    assert (await components.load_settings(store))[components.REMOVE_AFTER] == str(7 * 86_400)
