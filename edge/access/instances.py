"""Names a running process so that another on the same host can check it, and finds the instances that work now."""

import asyncio
import os
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Final

from msgspec import Struct

from edge.foundation.text import ENGLISH
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, PublicEquipment, public_equipment
from edge.store import equipment_memory, instance_leases
from edge.store.client import Store
from edge.store.lease_watch import LeaseWatch, parse_lease

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_TOKEN = re.compile(r"(.+) ([1-9][0-9]{0,8}) \S+")
_ended: Final[set[str]] = set()


class ProcessFate(Enum):
    """What is known about the process of a token."""

    RUNNING = auto()
    DEAD = auto()
    UNKNOWN = auto()
    """It is or was one of another host, kernel or namespace."""


def process_token() -> str:
    """Return a unique name of this process, with the kernel and the namespace in which its id counts."""
    return f"{_place()} {os.getpid()} {uuid.uuid4()}"


def end_token(token: str) -> None:
    """Record that the holder of a token of this process has ended: this process opens the gateway again."""
    _ended.add(token)


def is_surely_dead(token: str) -> bool:
    """Return whether the process of a token is gone; False also where that cannot be known."""
    return process_fate(token) is ProcessFate.DEAD


def process_fate(token: str) -> ProcessFate:
    """Return whether a process with the id of a token runs; an ended holder of this process is dead."""
    if token in _ended:
        return ProcessFate.DEAD
    match = _TOKEN.fullmatch(token)  # a sidecar claims its name with any random value
    if match is None or match[1] != _place():
        return ProcessFate.UNKNOWN
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return ProcessFate.DEAD
    except PermissionError:
        pass
    return ProcessFate.RUNNING


def _place() -> str:
    """Name the kernel and the namespace of process ids; empty where they are not available."""
    try:
        return f"{_BOOT_ID.read_text().strip()} {_PID_NAMESPACE.readlink()}"
    except OSError:
        return ""


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


class EquipmentView(Struct, frozen=True):
    """One piece of equipment as reported by a gateway at an instant; `at_work` is whether that gateway runs."""

    gateway: str
    at_work: bool
    at: int
    health: EquipmentHealth

    def public(self, language: str = ENGLISH) -> PublicEquipment:
        """Return the public form, with reasons in a language."""
        return public_equipment(self.health, self.gateway, self.at, at_work=self.at_work, language=language)


def equipment_views(reports: Mapping[str, GatewayReport]) -> list[EquipmentView]:
    """Return all equipment in the reports of the gateways."""
    return [
        EquipmentView(gateway, gateway_report.at_work, gateway_report.report.at, health)
        for gateway, gateway_report in reports.items()
        if gateway_report.report
        for health in gateway_report.report.equipment
    ]


def _is_sure(value: str) -> bool:
    """Return whether a lease alone shows that its holder works; one of the former form expires at the server."""
    lease = parse_lease(value)
    fate = process_fate(lease.token)
    return fate is ProcessFate.RUNNING or (lease.counter is None and fate is not ProcessFate.DEAD)


def _is_dead(value: str) -> bool:
    return process_fate(parse_lease(value).token) is ProcessFate.DEAD
