"""Examines the store: whether it answers, keeps what it is given, has room, and how fast it is."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from edge.config import RedisSettings
from edge.errors import EdgeError
from edge.maintenance.finding import Finding, failing, ok, warning
from edge.model.equipment_health import EquipmentHealth
from edge.store import health_reports
from edge.store.client import Store
from edge.store.opening import open_store
from edge.store.runs import active_jobs
from edge.store.server_check import NEARLY_FULL, MemoryUsage
from edge.store.snapshot import active_gateways

_PINGS = 20
_SLOW_MS = 50.0
_FULL = 0.98


async def examine_store(settings: RedisSettings) -> AsyncIterator[Finding]:
    """Look at the store of the settings. Raises SettingsError and Unavailable where it cannot serve a gateway."""
    if settings.url == "embedded:":
        yield warning(
            "store",
            "lives in the gateway's process, and is lost with it",
            'Name a Redis server in [redis] url, or a directory: url = "embedded:/var/lib/microdcs-edge/store".',
        )
        return
    async with open_store(settings, consumer=None) as store:
        told: Mapping[str, Any] = await store.execute("INFO")
        at_work = len(await active_jobs(store))
        yield ok("store", f"{_server(told)}, {at_work} {'job' if at_work == 1 else 'jobs'} at work")
        there = await active_gateways(store)
        yield _gateways(there)
        for gateway, report in (await health_reports.load(store, there)).items():
            for each in report.equipment if report else ():
                yield _equipment(gateway, each)
        yield await _durability(store, told)
        yield _room(MemoryUsage(int(told["used_memory"]), int(told["maxmemory"])))
        yield await _speed(store)


def _gateways(there: Sequence[str]) -> Finding:
    if there:
        return ok("gateway", f"at work: {', '.join(there)}")
    return warning("gateway", "none works on this store", "Start it: systemctl start microdcs-edge")


def _equipment(gateway: str, each: EquipmentHealth) -> Finding:
    """Say what a gateway says of its equipment; others examine how it can be reached."""
    subject = f"equipment {each.name} of {gateway}"
    counts = f"{each.outstanding} commands outstanding, {each.failed} failed, {each.refused} messages refused"
    last = f"; last: {each.last_error}" if each.last_error else ""
    match each.connected:
        case False:
            advice = (
                f"Switch it on, and look at its way to the gateway: jobs wait for it. edge equipment ping {each.name}"
            )
            return failing(subject, f"away; {counts}{last}", advice)
        case _ if each.refused:
            return warning(subject, f"{counts}{last}", "Mend what it sends: docs/reference/equipment.md")
        case True:
            return ok(subject, f"connected; {counts}{last}")
        case None:
            return ok(subject, f"has not said whether it is there; {counts}{last}")


def _server(told: Mapping[str, Any]) -> str:
    if told.get("server_name") == "valkey":
        return f"Valkey {told['valkey_version']}"
    return f"Redis {told['redis_version']}"


async def _durability(store: Store, told: Mapping[str, Any]) -> Finding:
    policy = f"maxmemory-policy {told['maxmemory_policy']}"
    if not int(told["aof_enabled"]):
        advice = "Set `appendonly yes` in the configuration of the Redis server."
        return warning("store durability", "does not write down each change: a power cut loses jobs", advice)
    if told["aof_last_write_status"] != "ok" or told["aof_last_bgrewrite_status"] != "ok":
        advice = "Look into the log of the Redis server; is its disk full?"
        return failing("store durability", "the last attempt to write to its disk failed", advice)
    try:
        configured: Mapping[str, str] = await store.execute("CONFIG GET", "appendfsync")
    except EdgeError:  # a user without the right to ask
        configured = {}
    fsync = configured.get("appendfsync", "not told")
    if fsync == "no":
        advice = "Set `appendfsync everysec`, or `always`, in the configuration of the Redis server."
        return warning("store durability", "leaves it to the system when to write: a power cut loses jobs", advice)
    return ok("store durability", f"append-only file, appendfsync {fsync}, {policy}")


def _room(taken: MemoryUsage) -> Finding:
    if not taken.limit:
        advice = "Set `maxmemory` of the Redis server, so that a full store refuses jobs before the machine runs out."
        return warning("store memory", f"{taken.used >> 20} MiB, without a limit", advice)
    found = f"{taken.used >> 20} MiB of {taken.limit >> 20} MiB ({taken.fullness:.0%})"
    advice = "Raise `maxmemory` of the Redis server or shorten [retention]: a full store takes no new job."
    if taken.fullness >= _FULL:
        return failing("store memory", found, advice)
    return warning("store memory", found, advice) if taken.fullness >= NEARLY_FULL else ok("store memory", found)


async def _speed(store: Store) -> Finding:
    took = []
    for _ in range(_PINGS):
        began = time.perf_counter()
        await store.execute("PING")
        took.append((time.perf_counter() - began) * 1000)
    found = f"answers in {sorted(took)[_PINGS // 2]:.2f} ms, {max(took):.2f} ms at worst"
    if max(took) > _SLOW_MS:
        return warning("store latency", found, "Is the machine busy, or its disk slow? Look at `vmstat 1`.")
    return ok("store latency", found)
