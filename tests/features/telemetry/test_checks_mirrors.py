"""The doctor names each mirrored set that no gateway reads."""

from edge.access.instances import process_token
from edge.config import RedisSettings, Settings
from edge.features.admin.doctor import findings_of
from edge.features.telemetry.checks import examine_mirrors
from edge.features.telemetry.settings import MirrorSettings
from edge.model.finding import PublicHealthFinding, public_form
from edge.store import instance_leases
from edge.store import set_mirrors as mirrors
from edge.store.client import Store
from edge.store.set_mirrors import Freshness, MirrorReader


async def found(redis: RedisSettings) -> PublicHealthFinding:
    mirror = {"mirror.carriers": MirrorSettings(url="redis://127.0.0.1:1", key="active")}
    (finding,) = await findings_of(
        "mirrors",
        examine_mirrors(Settings(redis=redis, sections=mirror)),
    )
    return public_form(finding)


async def test_mirror_that_no_gateway_reads_is_a_finding(store: Store, redis: RedisSettings) -> None:
    assert "no gateway reads it" in (await found(redis)).found
    await store.commit(mirrors.claim(store.keys, "carriers", MirrorReader(), "edge"))
    assert "no gateway reads it" in (await found(redis)).found
    await instance_leases.acquire(store, "edge", process_token())
    assert (await found(redis)).found == "edge has not read it yet"
    await store.commit(mirrors.save_state(store.keys, "carriers", Freshness.CURRENT, 1))
    assert (await found(redis)).found == "read by edge"


async def test_gateway_without_mirrors_has_no_finding(redis: RedisSettings) -> None:
    assert await findings_of("mirrors", examine_mirrors(Settings(redis=redis))) == []
