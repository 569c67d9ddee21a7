"""A sidecar registers by a call, repeats it as heartbeat, and its name is refused to others."""

import pytest
from msgspec.structs import replace

from edge.access.sidecars import MOST_SIDECARS, SidecarReport, register_sidecar
from edge.foundation.errors import Refused
from edge.model.component import Component
from edge.store import components
from edge.store.client import Store
from edge.store.commit import join

CAMERA = SidecarReport(id="camera-1", token="first-start", version="1.2", labels={"line": "3"})
AGAIN = replace(CAMERA, token="second-start")


async def test_sidecar_is_listed_with_its_last_heartbeat(store: Store) -> None:
    for now_s in (1_000, 1_015):
        assert await register_sidecar(store, CAMERA, now_s) == 15
    found = (await components.load_all(store))["camera-1"]
    assert (found.seen_s, found.token) == (1_015, "first-start")
    assert (found.component.kind, found.component.version, found.component.labels) == ("sidecar", "1.2", {"line": "3"})
    assert found.component.started == 1_000_000


async def test_second_sidecar_of_a_name_is_refused_while_the_first_runs(store: Store) -> None:
    await register_sidecar(store, CAMERA, 1_000)
    with pytest.raises(Refused, match="another component of the name 'camera-1'"):
        await register_sidecar(store, AGAIN, 1_044)
    await register_sidecar(store, AGAIN, 1_045)
    with pytest.raises(Refused, match="another component"):
        await register_sidecar(store, CAMERA, 1_046)


async def test_sidecar_with_the_name_of_a_gateway_is_refused(store: Store) -> None:
    gateway = Component(id="camera-1", kind="gateway", version="1", started=1)
    await store.commit(join((components.put(store.keys, gateway), components.touch(store.keys, "camera-1", 0))))
    with pytest.raises(Refused, match="another component"):
        await register_sidecar(store, CAMERA, 1_000_000)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a\n"])
async def test_name_with_invalid_characters_is_refused(store: Store, name: str) -> None:
    with pytest.raises(Refused, match="not a name of a component"):
        await register_sidecar(store, replace(CAMERA, id=name), 1)


async def test_number_of_sidecars_is_limited(store: Store) -> None:
    for number in range(MOST_SIDECARS):
        await register_sidecar(store, replace(CAMERA, id=f"camera-{number}"), 1_000 + number)
    with pytest.raises(Refused, match="100 sidecars work"):
        await register_sidecar(store, replace(CAMERA, id="camera-new"), 1_044)
    await register_sidecar(store, CAMERA, 1_044)
    await register_sidecar(store, replace(CAMERA, id="camera-new"), 1_045)
    found = await components.load_all(store)
    assert len(found) == MOST_SIDECARS
    assert "camera-0" not in found
