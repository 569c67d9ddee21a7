"""Examines the board of a gateway: watchdog, clock, GPIO, serial ports, memory and storage."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

from edge.features.admin.board import Board
from edge.foundation.computer import Computer
from edge.foundation.text import Text
from edge.model.finding import HealthFinding, Level, failing, ok, warning

_NEEDED_MB = 512
_GOOD_MB = 900
STORE = "/var/lib/redis-microdcs"
"""Data directory of the Redis instance of the package."""

_REDIS = "/etc/microdcs-edge/store.conf"
_APPLY = "edge hw apply"


def examine_board(computer: Computer, board: Board) -> Iterator[HealthFinding]:
    """Examine the parts of the board, then memory and storage, of a running or a mounted system."""
    if board.watchdog:
        yield _watchdog(computer)
    if board.rtc:
        yield _rtc(computer, board.rtc.advice)
    if board.gpio:
        yield _gpio(computer, board.gpio.chip)
    for serial in board.serial:
        yield _serial(computer, serial.port, serial.meaning)
    yield _memory(computer)
    yield from _storage(computer)


def _watchdog(computer: Computer) -> HealthFinding:
    if not computer.path("/dev/watchdog0").exists():
        advice = Text.of("Load its driver. On a Raspberry Pi: {apply}, then reboot", apply=_APPLY)
        return warning("watchdog", "no /dev/watchdog0: a hanging system is not restarted", advice)
    identity = computer.read("/sys/class/watchdog/watchdog0/identity") or "/dev/watchdog0"
    # Without CONFIG_WATCHDOG_SYSFS there is no state: check the settings of systemd instead.
    fed = computer.read("/sys/class/watchdog/watchdog0/state") == "active" or _is_fed_by_systemd(computer)
    if not fed:
        return warning(
            "watchdog",
            Text.of("{identity} is not used", identity=identity),
            Text.of("{apply}, then reboot", apply=_APPLY),
        )
    return ok("watchdog", Text.of("{identity} is used", identity=identity))


def _is_fed_by_systemd(computer: Computer) -> bool:
    directories = (computer.path(f"{place}/systemd/system.conf.d") for place in ("/etc", "/run", "/usr/lib"))
    files = [
        computer.path("/etc/systemd/system.conf"),
        *(file for directory in directories for file in directory.glob("*.conf")),
    ]
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file())
    return any(re.search(r"^RuntimeWatchdogSec=(?!0|off|$)", text, re.MULTILINE) for text in texts)


def _rtc(computer: Computer, advice: str) -> HealthFinding:
    if not computer.path("/sys/class/rtc/rtc0").exists():
        found = "none: after a power cut the time is wrong until a time server is reached"
        return warning("real-time clock", found, advice)
    return ok("real-time clock", computer.read("/sys/class/rtc/rtc0/name") or "rtc0")


def _gpio(computer: Computer, label: str) -> HealthFinding:
    labels = list(computer.gpio_chips())
    if label in labels:
        return ok("GPIO", Text.of("chip {label}", label=label))
    found = (
        Text.of("no chip {label}, but {labels}", label=label, labels=", ".join(labels))
        if labels
        else Text.of("no chip answers")
    )
    return warning("GPIO", found, "Check the name of the board, and that this user may open /dev/gpiochip*.")


def _serial(computer: Computer, port: str, meaning: str) -> HealthFinding:
    if computer.path(port).exists():
        return ok("serial", f"{port} ({meaning})")
    advice = Text.of("{apply}, then reboot; not needed without serial equipment", apply=_APPLY)
    return warning("serial", Text.of("there is no {port} ({meaning})", port=port, meaning=meaning), advice)


def _memory(computer: Computer) -> HealthFinding:
    size = computer.memory_mb()
    found = f"{size} MiB"
    if size >= _GOOD_MB:
        return ok("memory", found)
    grade = warning if size >= _NEEDED_MB else failing
    return grade("memory", found, Text.of("1 GiB is comfortable: lower maxmemory in {redis}", redis=_REDIS))


def _storage(computer: Computer) -> Iterator[HealthFinding]:
    finding = storage(computer)
    yield finding
    mount = computer.mount_of(STORE)
    if mount is None or finding.level is Level.FAILING:
        return
    if "noatime" in mount.options:
        yield ok("mount options", "noatime")
    else:
        yield warning(
            "mount options", "without noatime: reading causes writes", "Add noatime to its options in /etc/fstab"
        )
    yield _append_policy(computer, computer.medium_of(mount))


async def examine_storage() -> AsyncIterator[HealthFinding]:
    """Examine the storage of the store on this machine."""
    yield await asyncio.to_thread(storage, Computer())


def storage(computer: Computer) -> HealthFinding:
    """Return the finding about the storage of the store."""
    mount = computer.mount_of(STORE)
    if mount is None:
        return warning(
            "storage",
            Text.of("the file system of {store} is unknown", store=STORE),
            "Check with: findmnt --target /var/lib",
        )
    medium = computer.medium_of(mount)
    if medium == "memory":
        found = Text.of("{store} is in memory ({kind}): a power cut loses every job", store=STORE, kind=mount.kind)
        return failing("storage", found, Text.of("Mount a file system of a disk at {store}", store=STORE))
    if "ro" in mount.options:
        return failing(
            "storage",
            Text.of("{store} cannot be written", store=STORE),
            "Mount its file system rw: check /etc/fstab and dmesg",
        )
    return ok("storage", f"{medium}, {mount.kind}")


def _append_policy(computer: Computer, medium: str) -> HealthFinding:
    settings = dict(re.findall(r"^(append\w+) +(\S+)", computer.read(_REDIS), re.MULTILINE))
    policy = settings.get("appendfsync", "everysec")
    match settings.get("appendonly"), policy, medium:
        case None, _, _:
            return warning(
                "append-only file",
                Text.of("not set in {redis}", redis=_REDIS),
                "Check whether the gateway uses another store.",
            )
        case "yes", "always", "SD":
            advice = Text.of("appendfsync everysec in {redis}, or a disk", redis=_REDIS)
            found = Text.of("always, on an SD card: it wears six times as fast")
            return warning("append-only file", found, advice)
        case "yes", "everysec" | "always", _:
            return ok("append-only file", policy)
        case "yes", _, _:
            found = Text.of("appendfsync {policy}: a power cut loses half a minute of jobs", policy=policy)
            return warning("append-only file", found, "Good only with a UPS; else: appendfsync everysec")
        case _:
            advice = Text.of("appendonly yes in {redis}", redis=_REDIS)
            return failing("append-only file", "off: a power cut loses jobs", advice)
