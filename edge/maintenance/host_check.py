"""Examines the machine: clock, disks, memory, versions."""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator, Iterable
from importlib import metadata
from pathlib import Path

from edge import __version__
from edge.maintenance.clock import Clock, read_clock
from edge.maintenance.finding import Finding, failing, ok, warning

MIB = 1 << 20
LIBRARIES = ("asyncua", "cryptography", "msgspec", "paho-mqtt", "redis", "structlog", "uvloop")

_LITTLE, _VERY_LITTLE = 0.10, 0.03
_FREE_ENOUGH = 2048 * MIB
"""A part of a large disk is plenty: above this nothing is said."""


async def examine_clock() -> AsyncIterator[Finding]:
    """Look whether somebody keeps the clock at the right time."""
    yield await asyncio.to_thread(clock)


def clock() -> Finding:
    """Tell whether the clock of this machine is kept."""
    match read_clock():
        case Clock.SYNCHRONISED:
            return ok("clock", "synchronised")
        case Clock.UNSYNCHRONISED:
            advice = (
                "Look at `timedatectl timesync-status`; name a time server of the plant in "
                "/etc/systemd/timesyncd.conf. Without network, fit a real-time clock."
            )
            return warning("clock", "not synchronised: instants in logs, jobs and events may be wrong", advice)
        case Clock.UNKNOWN:
            return warning("clock", "it cannot be told whether it is synchronised", "Look at `timedatectl`.")


async def examine_disks(directories: Iterable[str]) -> AsyncIterator[Finding]:
    """Look how much room is left on each disk that holds one of the directories."""
    for place, total, free in await asyncio.to_thread(_disks, [Path(each) for each in directories]):
        left = free / total if total else 0.0
        found = f"{free // MIB} MiB of {total // MIB} MiB free ({left:.0%})"
        advice = f"Make room on the disk of {place}: `journalctl --vacuum-size=64M`, `apt-get clean`."
        subject = f"disk {place}"
        if left < _VERY_LITTLE and free < _FREE_ENOUGH:
            yield failing(subject, found, advice)
        elif left < _LITTLE and free < _FREE_ENOUGH:
            yield warning(subject, found, advice)
        else:
            yield ok(subject, found)


def _disks(directories: Iterable[Path]) -> list[tuple[Path, int, int]]:
    """Give size and room in bytes, once for each disk; of a directory that is not there yet, the one above counts."""
    disks: dict[int, tuple[Path, int, int]] = {}
    for directory in directories:
        place = next(path for path in (directory, *directory.parents) if path.exists())
        usage = shutil.disk_usage(place)
        disks.setdefault(place.stat().st_dev, (place, usage.total, usage.free))
    return list(disks.values())


async def examine_memory(meminfo: Path = Path("/proc/meminfo")) -> AsyncIterator[Finding]:
    """Look how much memory is left."""
    lines = (await asyncio.to_thread(meminfo.read_text)).splitlines()
    told = {name: int(rest.split()[0]) >> 10 for name, _, rest in (line.partition(":") for line in lines)}
    total, free = told["MemTotal"], told["MemAvailable"]
    found = f"{free} MiB of {total} MiB available"
    advice = "Find out who takes it, with `systemd-cgtop -m`; bound the store with `maxmemory`."
    if free < total * _VERY_LITTLE:
        yield failing("memory", found, advice)
    elif free < total * _LITTLE:
        yield warning("memory", found, advice)
    else:
        yield ok("memory", found)


async def examine_versions() -> AsyncIterator[Finding]:
    """Name what runs here."""
    told = await asyncio.to_thread(versions)
    main = ("microdcs-edge", "Python", "system", "kernel", "machine", "board")
    found = ", ".join(f"{name} {told[name]}" for name in main if name in told)
    if sys.maxsize < 1 << 32:
        yield failing("versions", found, "A 64-bit operating system is needed.")
    else:
        yield ok("versions", found)


def versions() -> dict[str, str]:
    """Give the versions of all that runs here, by name."""
    told = {
        "microdcs-edge": __version__,
        "Python": platform.python_version(),
        "system": _system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }
    model = Path("/proc/device-tree/model")
    if model.exists():
        told["board"] = model.read_text(encoding="utf-8", errors="replace").rstrip("\0\n")
    return told | {name: metadata.version(name) for name in LIBRARIES} | {"processors": str(os.cpu_count())}


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()
