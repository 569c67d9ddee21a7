"""Tests of what a piece of equipment needs beyond its connection."""

from edge.model.equipment_health import EquipmentHealth, EquipmentReport
from edge.sfc.signal import Phase
from edge.store import equipment_memory, instance_leases
from edge.store.client import Store
from edge.store.commit import join
from edge.store.equipment_memory import SafingCommand


async def test_texts_of_equipment_are_kept_by_its_name(store: Store) -> None:
    assert await equipment_memory.load_memory(store, "wrench") == {}
    await equipment_memory.save_memory(store, "wrench", {"revisions": "1:3", "last": "7"})
    await equipment_memory.save_memory(store, "wrench", {"last": "8"})
    await equipment_memory.save_memory(store, "press", {})
    assert await equipment_memory.load_memory(store, "wrench") == {"revisions": "1:3", "last": "8"}
    assert await equipment_memory.load_memory(store, "press") == {}


async def test_a_tool_stays_disabled_until_it_is_removed(store: Store) -> None:
    await equipment_memory.keep_disabled(store, "opc.tcp://tool", 5)
    assert await equipment_memory.is_disabled(store, "opc.tcp://tool")
    assert not await equipment_memory.is_disabled(store, "opc.tcp://other")
    await equipment_memory.keep_disabled(store, "opc.tcp://tool", None)
    assert not await equipment_memory.is_disabled(store, "opc.tcp://tool")


WRENCH = EquipmentHealth(name="wrench", kind="mqtt", connected=True, last_seen=1000, outstanding=2)
REPORT = EquipmentReport(at=2000, equipment=(WRENCH, EquipmentHealth(name="eye", kind="vision")))


async def test_a_report_is_read_as_it_was_written(store: Store) -> None:
    await instance_leases.register(store, ("station-1",), "edge")
    await store.commit(equipment_memory.save_report(store.keys, "edge", REPORT))
    assert await equipment_memory.load_registered_reports(store, ("station-1", "station-2")) == {"edge": REPORT}
    assert 0 < await store.execute("PTTL", store.keys.health("edge")) <= equipment_memory.REPORT_LIFETIME_MS


async def test_no_report_exists_before_the_first_gateway(store: Store) -> None:
    assert await equipment_memory.load_registered_reports(store, ("station-1",)) == {}


async def test_unreadable_report_is_read_as_none(store: Store) -> None:
    await instance_leases.register(store, ("station-1",), "edge")
    await store.execute("SET", store.keys.health("edge"), '{"at": "noon"}')
    assert await equipment_memory.load_registered_reports(store, ("station-1",)) == {"edge": None}


def command(command_id: str, phase: Phase, since: int) -> SafingCommand:
    return SafingCommand(
        phase=phase,
        command_id=command_id,
        type_id="tighten.v1",
        scope="station-1",
        job_id="J1",
        correlation_id="R1",
        action="a",
        attempt=1,
        since=since,
    )


async def test_commands_are_kept_until_their_id_is_removed(store: Store) -> None:
    first, second = command("J1/R1/a/1", Phase.RESET, 5), command("J1/R1/a/1", Phase.STOP, 3)
    other = command("J1/R1/b/1", Phase.STOP, 4)
    await store.commit(
        join(equipment_memory.save_safing(store.keys, safing_command) for safing_command in (first, second, other))
    )
    assert await equipment_memory.load_all_safing(store) == [second, other, first]
    assert await equipment_memory.load_safing(store, "J1/R1/a/1") == [second, first]
    await store.commit(equipment_memory.remove_safing(store.keys, "J1/R1/a/1"))
    assert await equipment_memory.load_all_safing(store) == [other]


async def test_unreadable_command_is_left_out(store: Store) -> None:
    await store.execute("HSET", store.keys.safing(), "stop:x", "{")
    assert await equipment_memory.load_all_safing(store) == []
