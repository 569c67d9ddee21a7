"""Finds the instances that work now, for commands that look once: they have no watch of the leases yet."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from edge.access.process_identity import ProcessFate, process_fate
from edge.model.equipment_health import EquipmentReport
from edge.store import equipment_memory, instance_leases
from edge.store.client import Store
from edge.store.lease_watch import LeaseWatch, parse_lease

_LOOK_EVERY_S = 0.1


class GatewayReport(Struct, frozen=True):
    """The last report of a gateway, None where there is none, and whether that gateway works now."""

    report: EquipmentReport | None
    at_work: bool


async def working_instances(store: Store, names: Collection[str]) -> set[str]:
    """Return which of these instances work: their process runs on this host, or their lease is renewed meanwhile.

    Takes two seconds at most per live instance of another host, four until the lease of an ended one is judged.
    """
    first, watch, ended = await instance_leases.read_values(store, names), LeaseWatch(), set[str]()
    working = {name for name, value in first.items() if value and _is_sure(value)}
    open_names = {name for name, value in first.items() if value and not _is_dead(value)} - working
    values: Mapping[str, str | None] = {name: first[name] for name in open_names}
    while open_names:
        working |= {name for name, value in values.items() if value is not None and value != first[name]}
        ended |= {name for name, value in values.items() if value is None} | watch.observe(values).keys()
        if not (open_names := open_names - working - ended):
            break
        await asyncio.sleep(_LOOK_EVERY_S)
        values = await instance_leases.read_values(store, open_names)
    return working


async def load_reports(store: Store, scopes: Sequence[str]) -> Mapping[str, GatewayReport]:
    """Return the reports of the gateways that are registered for these scopes, by name."""
    reports = await equipment_memory.load_registered_reports(store, scopes)
    working = await working_instances(store, reports)
    return {name: GatewayReport(report, name in working) for name, report in reports.items()}


def _is_sure(value: str) -> bool:
    """Return whether a lease alone shows that its holder works; one of the former form expires at the server."""
    lease = parse_lease(value)
    fate = process_fate(lease.token)
    return fate is ProcessFate.RUNNING or (lease.counter is None and fate is not ProcessFate.DEAD)


def _is_dead(value: str) -> bool:
    return process_fate(parse_lease(value).token) is ProcessFate.DEAD
