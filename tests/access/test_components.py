"""Components register and send heartbeats; a second component of the same id stops with the reason."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from edge.access.components import MOST_SIDECARS, Clock, Report, SidecarReport, announced, register_sidecar, registered
from edge.access.instances import process_token
from edge.config import RedisSettings
from edge.foundation.errors import Refused, unwrap_group
from edge.model.plant import Component, PluginState
from edge.store import components
from edge.store.client import Store
from edge.store.commit import join
from edge.store.open_store import open_store

BEAT_S = 0.05
LIVING, OTHER = "elsewhere 1 first", "elsewhere 2 second"
"""Tokens of processes whose fate cannot be known from here."""

Describe = Callable[[], Awaitable[Report]]


def described(id: str = "worker-1", **others: object) -> Describe:
    async def describe() -> Report:
        component = Component(id=id, kind="worker", version="1.0", started=1, **others)  # type: ignore[arg-type]
        return Report(component, (PluginState(name="sum", kind="node kind", state="loaded"),))

    return describe


def clock_of(read_s: Callable[[], int]) -> Clock:
    """Return a clock that shows these seconds."""

    async def clock(_: Store) -> int:
        return read_s() * 1000

    return clock


async def test_component_is_listed_while_it_runs_and_afterwards(store: Store) -> None:
    now = [1000]
    async with registered(store, "worker-1", LIVING, described(), heartbeat_s=BEAT_S, clock=clock_of(lambda: now[0])):
        found = await listed(store)
        assert (found.component.kind, found.plugins[0].name, found.token, found.seen_s) == (
            "worker",
            "sum",
            LIVING,
            1000,
        )
        now[0] = 1015
        await listed(store, lambda found: found.seen_s == 1015)
    assert replace(await listed(store), token="") == await listed(store), "it holds the id no more"


Check = Callable[[components.KnownComponent], bool]


async def listed(store: Store, check: Check = lambda _: True, id: str = "worker-1") -> components.KnownComponent:
    """Return the component once it is listed and as expected."""
    async with asyncio.timeout(60):
        while True:
            known_component = (await components.load_all(store)).get(id)
            if known_component and check(known_component):
                return known_component
            await asyncio.sleep(BEAT_S)


async def test_later_component_of_an_id_stops_with_the_reason(store: Store) -> None:
    clock = clock_of(iter(range(1000, 10_000_000)).__next__)
    async with registered(store, "worker-1", LIVING, described(), heartbeat_s=BEAT_S, clock=clock):
        await listed(store)
        with pytest.raises(Refused, match="another component of the name 'worker-1' works on this store"):
            async with registered(store, "worker-1", OTHER, described(), heartbeat_s=1.0):
                pytest.fail("it must not work")
        assert (await listed(store)).token == LIVING


async def test_one_of_concurrently_started_components_runs(store: Store) -> None:
    stopped: list[str] = []
    others_have_stopped = asyncio.Event()

    async def start(token: str) -> str:
        clock = clock_of(iter(range(1000, 10_000_000)).__next__)
        try:
            async with registered(store, "worker-1", token, described(), heartbeat_s=0.2, clock=clock):
                await others_have_stopped.wait()
        except Refused:
            stopped.append(token)
            if len(stopped) == 4:
                others_have_stopped.set()
            return "stopped"
        return "worked"

    async with asyncio.timeout(60):
        found = await asyncio.gather(*(start(f"elsewhere {number} x") for number in range(5)))
    assert sorted(found) == ["stopped"] * 4 + ["worked"]


async def test_running_component_stops_when_its_id_is_taken(store: Store) -> None:
    async def work() -> None:
        async with registered(store, "worker-1", LIVING, described(), heartbeat_s=BEAT_S):
            await listed(store)
            await store.commit(components.take(store.keys, "worker-1", OTHER))
            await asyncio.Event().wait()

    with pytest.raises(Refused), unwrap_group():
        await work()


async def test_killed_component_is_replaced(store: Store) -> None:
    dead = process_token().rsplit(" ", 2)[0] + " 4194303 killed"
    await store.commit(components.take(store.keys, "worker-1", dead))
    async with registered(store, "worker-1", OTHER, described(), heartbeat_s=BEAT_S):
        assert (await listed(store)).token == OTHER
    # Of a process on another machine only missing heartbeats show that it is gone.
    await store.commit(components.take(store.keys, "worker-1", LIVING))
    async with registered(store, "worker-1", OTHER, described(), heartbeat_s=BEAT_S):
        assert (await listed(store)).token == OTHER


async def test_component_takes_its_id_at_once_after_a_failover(store: Store, redis: RedisSettings) -> None:
    """Its former registration could not be released, and its token is that of this process: it waited for 31 s."""
    async with (
        open_store(redis, consumer=None) as former,
        registered(former, "worker-1", process_token(), described(), heartbeat_s=BEAT_S),
    ):
        former.end("the primary has changed")
    async with asyncio.timeout(10), registered(store, "worker-1", process_token(), described()):
        pass


async def test_component_registers_again_in_an_emptied_store(store: Store) -> None:
    async with registered(store, "worker-1", LIVING, described(), heartbeat_s=BEAT_S):
        await listed(store)
        await store.commit(components.remove(store.keys, ["worker-1"]))
        assert (await listed(store, lambda found: bool(found.token))).token == LIVING


async def test_gateway_without_its_lease_sends_no_heartbeat(store: Store) -> None:
    holds = [False]
    begin = announced(store, "gw-1", LIVING, described("gw-1"), holds_lease=lambda: holds[0], heartbeat_s=BEAT_S)
    async with begin:
        await asyncio.sleep(4 * BEAT_S)
        assert await components.load_all(store) == {}
        holds[0] = True
        await listed(store, id="gw-1")


async def test_frozen_gateway_stops_when_another_has_its_name(store: Store) -> None:
    holds = [True]

    async def work() -> None:
        async with announced(
            store, "gw-1", LIVING, described("gw-1"), holds_lease=lambda: holds[0], heartbeat_s=BEAT_S
        ):
            await listed(store, id="gw-1")
            holds[0] = False
            await store.commit(components.take(store.keys, "gw-1", OTHER))
            await asyncio.Event().wait()

    with pytest.raises(Refused, match="another component of the name 'gw-1'"), unwrap_group():
        await asyncio.wait_for(work(), 60)
    assert (await listed(store, id="gw-1")).token == OTHER


async def test_gateway_waits_while_another_holds_its_lease(store: Store) -> None:
    """The other, of another name, has the lease while it takes over the work; the id is still ours."""
    holds = [True]
    work = announced(store, "gw-1", LIVING, described("gw-1"), holds_lease=lambda: holds[0], heartbeat_s=BEAT_S)
    async with work:
        await listed(store, id="gw-1")
        holds[0] = False
        await asyncio.sleep(4 * BEAT_S)
        assert (await listed(store, id="gw-1")).token == LIVING


async def test_outdated_components_are_removed(store: Store) -> None:
    for id, seen_s in (("old", 1000), ("new", 2_000_000)):
        report = await described(id)()
        await store.commit(components.put(store.keys, report.component))
        await store.commit(components.touch(store.keys, id, seen_s))
    assert await components.remove_outdated(store, 2_000_010) == []
    await store.commit(components.set_remove_after(store.keys, 3600))
    assert await components.remove_outdated(store, 2_000_010) == ["old"]
    assert list(await components.load_all(store)) == ["new"]


async def test_stopped_component_is_removed_by_a_running_one(store: Store) -> None:
    now = [1000]
    clock = clock_of(lambda: now[0])
    async with registered(store, "gone", OTHER, described("gone"), heartbeat_s=BEAT_S, clock=clock):
        await listed(store, id="gone")
    async with registered(store, "worker-1", LIVING, described(), heartbeat_s=BEAT_S, clock=clock):
        await listed(store)
        assert "gone" in await components.load_all(store)
        now[0] += components.DEFAULT_REMOVE_AFTER_S + 1
        async with asyncio.timeout(60):
            while True:
                if "gone" not in await components.load_all(store):
                    break
                await asyncio.sleep(BEAT_S)
        assert (await listed(store)).seen_s == now[0]


async def test_running_component_is_kept_with_the_shortest_setting(store: Store) -> None:
    await store.commit(components.set_remove_after(store.keys, 1))
    await store.commit(components.touch(store.keys, "worker-1", 1000))
    assert await components.remove_outdated(store, 1060) == []
    assert await components.remove_outdated(store, 1061) == ["worker-1"]


async def test_unreadable_entries_are_skipped(store: Store) -> None:
    await store.execute("HSET", store.keys.discovery_components(), "x", "no JSON")
    await store.execute("HSET", store.keys.discovery_timestamps(), "x", "soon")
    assert await components.load_all(store) == {}
    assert await components.remove_outdated(store, 10**9) == ["x"]


CAMERA = SidecarReport(id="camera-1", token="first-start", version="1.2", labels={"line": "3"})
AGAIN = replace(CAMERA, token="second-start")


async def test_sidecar_is_listed_with_its_last_heartbeat(store: Store) -> None:
    for now_s in (1_000, 1_015):
        assert await register_sidecar(store, CAMERA, now_s) == 15
    known_component = (await components.load_all(store))["camera-1"]
    assert (known_component.seen_s, known_component.token) == (1_015, "first-start")
    assert (known_component.component.kind, known_component.component.version, known_component.component.labels) == (
        "sidecar",
        "1.2",
        {"line": "3"},
    )
    assert known_component.component.started == 1_000_000


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
    known_components = await components.load_all(store)
    assert len(known_components) == MOST_SIDECARS
    assert "camera-0" not in known_components
