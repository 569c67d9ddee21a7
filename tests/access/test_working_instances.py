"""A command that looks once finds which gateways work: by their process, else by the renewal of their lease."""

import asyncio
import time

from edge.access.process_identity import process_token
from edge.access.working_instances import GatewayReport, load_reports, working_instances
from edge.links.background_task import background_task
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.lease_watch import LIFETIME_S

ELSEWHERE = "elsewhere pid:[1] 1 x"


async def renew(store: Store) -> None:
    """Renew the lease of `live`, which another host holds."""
    value: str | None = ""
    while value is not None:
        await asyncio.sleep(0.3)
        value = await instance_leases.renew(store, "live", ELSEWHERE, value)


async def test_gateway_of_this_host_is_found_at_once(store: Store) -> None:
    await instance_leases.acquire(store, "edge", process_token())
    began = time.monotonic()
    assert await working_instances(store, ["edge", "released"]) == {"edge"}
    assert time.monotonic() - began < LIFETIME_S / 2


async def test_killed_gateway_does_not_work_though_its_lease_remains(store: Store) -> None:
    for name in ("live", "killed"):
        await instance_leases.acquire(store, name, ELSEWHERE)
    async with background_task(renew(store), "renewal"), asyncio.timeout(60):
        assert await working_instances(store, ["live", "killed"]) == {"live"}


async def test_gateway_with_an_expiring_lease_works_until_it_expires(store: Store) -> None:
    await store.execute("SET", store.keys.lease_instance("older"), ELSEWHERE, "PX", 60_000)
    assert await working_instances(store, ["older"]) == {"older"}


async def test_report_names_whether_its_gateway_works(store: Store) -> None:
    for name in ("edge", "away"):
        await instance_leases.register(store, ("station-1",), name)
    await instance_leases.acquire(store, "edge", process_token())
    assert await load_reports(store, ("station-1",)) == {
        "away": GatewayReport(None, at_work=False),
        "edge": GatewayReport(None, at_work=True),
    }
