"""The equipment report of a gateway is read from the store."""

from edge.model.equipment_health import EquipmentHealth, EquipmentReport
from edge.store import health_reports, instance_leases
from edge.store.client import Store

WRENCH = EquipmentHealth(name="wrench", kind="mqtt", connected=True, last_seen=1000, outstanding=2)
REPORT = EquipmentReport(at=2000, equipment=(WRENCH, EquipmentHealth(name="eye", kind="vision")))


async def test_a_report_is_read_as_it_was_written(store: Store) -> None:
    await instance_leases.register(store, ("station-1",), "edge")
    await store.commit(health_reports.save(store.keys, "edge", REPORT))
    assert await health_reports.load_registered(store, ("station-1", "station-2")) == {"edge": REPORT}
    assert 0 < await store.execute("PTTL", store.keys.health("edge")) <= health_reports.LIFETIME_MS


async def test_no_report_exists_before_the_first_gateway(store: Store) -> None:
    assert await health_reports.load_registered(store, ("station-1",)) == {}


async def test_unreadable_report_is_read_as_none(store: Store) -> None:
    await instance_leases.register(store, ("station-1",), "edge")
    await store.execute("SET", store.keys.health("edge"), '{"at": "noon"}')
    assert await health_reports.load_registered(store, ("station-1",)) == {"edge": None}
