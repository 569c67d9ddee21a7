"""Examines the machine: clock, disks, memory, versions; and the metrics that it serves."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from edge import __version__
from edge.app.http_probe import no_answer, other_program, probe
from edge.foundation.clock_sync import Clock, read_clock
from edge.foundation.text import Text, join_texts
from edge.model.finding import HealthFinding, failing, ok, warning

MIB = 1 << 20
LIBRARIES = ("asyncua", "cryptography", "msgspec", "paho-mqtt", "redis", "structlog", "uvloop")

_LITTLE, _VERY_LITTLE = 0.10, 0.03
_FREE_ENOUGH = 2048 * MIB
"""Above this free space a low share of a large disk is not a finding."""


async def examine_clock() -> AsyncIterator[HealthFinding]:
    """Examine whether the clock of this machine is synchronized."""
    yield clock_finding(await asyncio.to_thread(read_clock))


def clock_finding(clock: Clock) -> HealthFinding:
    """Return the finding about a state of the clock."""
    match clock:
        case Clock.SYNCHRONISED:
            return ok("clock", "synchronised")
        case Clock.UNSYNCHRONISED:
            advice = (
                "Check `timedatectl timesync-status`; set a time server of the plant in "
                "/etc/systemd/timesyncd.conf. Without network, fit a real-time clock."
            )
            return warning("clock", "not synchronised: instants in logs, jobs and events may be wrong", advice)
        case Clock.UNKNOWN:
            return warning("clock", "state unknown", "Check with: timedatectl")


async def examine_disks(directories: Iterable[str]) -> AsyncIterator[HealthFinding]:
    """Examine the free space of each disk with one of the directories."""
    for place, total, free in await asyncio.to_thread(_disks, [Path(directory) for directory in directories]):
        left = free / total if total else 0.0
        found = Text.of("{free} MiB of {total} MiB free ({left:.0%})", free=free // MIB, total=total // MIB, left=left)
        advice = Text.of(
            "Free space on the disk of {place}: `journalctl --vacuum-size=64M`, `apt-get clean`.", place=place
        )
        subject = Text.of("disk {place}", place=place)
        if left < _VERY_LITTLE and free < _FREE_ENOUGH:
            yield failing(subject, found, advice)
        elif left < _LITTLE and free < _FREE_ENOUGH:
            yield warning(subject, found, advice)
        else:
            yield ok(subject, found)


def _disks(directories: Iterable[Path]) -> list[tuple[Path, int, int]]:
    """Return size and free space in bytes, once per disk; for a missing directory its parent is used."""
    disks: dict[int, tuple[Path, int, int]] = {}
    for directory in directories:
        place = next(path for path in (directory, *directory.parents) if path.exists())
        usage = shutil.disk_usage(place)
        disks.setdefault(place.stat().st_dev, (place, usage.total, usage.free))
    return list(disks.values())


async def examine_memory(meminfo: Path = Path("/proc/meminfo")) -> AsyncIterator[HealthFinding]:
    """Examine the available memory."""
    lines = (await asyncio.to_thread(meminfo.read_text)).splitlines()
    facts = {name: int(rest.split()[0]) >> 10 for name, _, rest in (line.partition(":") for line in lines)}
    total, free = facts["MemTotal"], facts["MemAvailable"]
    found = Text.of("{free} MiB of {total} MiB available", free=free, total=total)
    advice = "Find the largest user with `systemd-cgtop -m`; limit the store with `maxmemory`."
    if free < total * _VERY_LITTLE:
        yield failing("memory", found, advice)
    elif free < total * _LITTLE:
        yield warning("memory", found, advice)
    else:
        yield ok("memory", found)


_MAIN = ("microdcs-edge", "Python", "system", "kernel", "machine", "board")
_NAMES = {
    "system": Text.of("system"),
    "kernel": Text.of("kernel"),
    "machine": Text.of("machine"),
    "board": Text.of("board"),
}


async def examine_versions() -> AsyncIterator[HealthFinding]:
    """Yield the versions of software and machine."""
    facts = await asyncio.to_thread(versions)
    shown = (
        Text.of("{name} {version}", name=_NAMES.get(name, name), version=facts[name]) for name in _MAIN if name in facts
    )
    found = join_texts(", ", shown)
    if sys.maxsize < 1 << 32:
        yield failing("versions", found, "A 64-bit operating system is needed.")
    else:
        yield ok("versions", found)


def versions() -> dict[str, str]:
    """Return the versions of all software by name."""
    facts = {
        "microdcs-edge": __version__,
        "Python": platform.python_version(),
        "system": _system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }
    model = Path("/proc/device-tree/model")
    if model.exists():
        facts["board"] = model.read_text(encoding="utf-8", errors="replace").rstrip("\0\n")
    return facts | {name: metadata.version(name) for name in LIBRARIES} | {"processors": str(os.cpu_count())}


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


async def examine_metrics(listen: str) -> AsyncIterator[HealthFinding]:
    """Examine whether the metrics of `[metrics] listen` can be read."""
    parts = urlsplit(f"//{listen}")
    port = parts.port or 0
    try:
        answer = await probe(parts.hostname or "", port, "/metrics")
    except (OSError, TimeoutError) as error:
        yield no_answer("metrics", listen, port, error)
        return
    if answer.status == HTTPStatus.OK and b"microdcs_edge_" in answer.body:
        yield ok("metrics", Text.of("answers at {address}", address=listen))
    else:
        yield other_program("metrics", listen, port)
