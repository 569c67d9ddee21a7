"""The equipment report of a gateway is read from the store, with the presence of the gateway."""

from edge.config import RedisSettings
from edge.model.equipment_health import EquipmentHealth, EquipmentReport
from edge.store import health_reports, instance_leases
from edge.store.client import Store
from edge.store.health_reports import GatewayReport
from edge.store.opening import open_store

WRENCH = EquipmentHealth(name="wrench", kind="mqtt", connected=True, last_seen=1000, outstanding=2)
REPORT = EquipmentReport(at=2000, equipment=(WRENCH, EquipmentHealth(name="eye", kind="vision")))


async def test_a_report_is_read_as_it_was_written(store: Store) -> None:
    await instance_leases.register(store, ("station-1",), "edge")
    await store.commit(health_reports.save(store.keys, "edge", REPORT))
    assert await health_reports.load_all(store, ("station-1", "station-2")) == {
        "edge": GatewayReport(REPORT, at_work=False)
    }
    assert 0 < await store.execute("PTTL", store.keys.health("edge")) <= health_reports.LIFETIME_MS


async def test_gateway_with_a_lease_is_reported_at_work(store: Store, redis: RedisSettings) -> None:
    async with open_store(redis, "other") as other:
        for each in (store, other):
            await instance_leases.register(each, ("station-1",), each.consumer)
        await instance_leases.acquire(other, "other", "token")
        reported = await health_reports.load_all(store, ("station-1",))
    assert reported == {"edge": GatewayReport(None, at_work=False), "other": GatewayReport(None, at_work=True)}


async def test_no_report_exists_before_the_first_gateway(store: Store) -> None:
    assert await health_reports.load_all(store, ("station-1",)) == {}


async def test_unreadable_report_is_read_as_none(store: Store) -> None:
    await instance_leases.register(store, ("station-1",), "edge")
    await store.execute("SET", store.keys.health("edge"), '{"at": "noon"}')
    assert await health_reports.load_all(store, ("station-1",)) == {"edge": GatewayReport(None, at_work=False)}
