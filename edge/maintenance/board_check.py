"""Examines whether a computer is fit to be a gateway: what its board has, its memory, what its store is on."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator

from edge.hardware.board import Board
from edge.hardware.computer import Computer
from edge.maintenance.finding import Finding, Level, failing, ok, warning

_NEEDED_MB = 512
_GOOD_MB = 900
STORE = "/var/lib/redis-microdcs"
"""Where the package has the gateway's own Redis instance keep its data."""

_REDIS = "/etc/redis/redis-microdcs.conf"
_APPLY = "edge hw apply"


def examine_board(computer: Computer, board: Board) -> Iterator[Finding]:
    """Look at every point that the board has, then at those that every computer has, running or mounted elsewhere."""
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


def _watchdog(computer: Computer) -> Finding:
    if not computer.path("/dev/watchdog0").exists():
        advice = f"Is its driver loaded? On a Raspberry Pi: {_APPLY}, then reboot"
        return warning("watchdog", "there is no /dev/watchdog0: a hanging system stays as it is", advice)
    identity = computer.read("/sys/class/watchdog/watchdog0/identity") or "/dev/watchdog0"
    # Without CONFIG_WATCHDOG_SYSFS there is no state; then the settings of systemd have to do.
    fed = computer.read("/sys/class/watchdog/watchdog0/state") == "active" or _is_fed_by_systemd(computer)
    if not fed:
        return warning("watchdog", f"{identity} is there, and nobody feeds it", f"{_APPLY}, then reboot")
    return ok("watchdog", f"{identity} is fed")


def _is_fed_by_systemd(computer: Computer) -> bool:
    directories = (computer.path(f"{place}/systemd/system.conf.d") for place in ("/etc", "/run", "/usr/lib"))
    files = [computer.path("/etc/systemd/system.conf"), *(file for each in directories for file in each.glob("*.conf"))]
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file())
    return any(re.search(r"^RuntimeWatchdogSec=(?!0|off|$)", text, re.MULTILINE) for text in texts)


def _rtc(computer: Computer, advice: str) -> Finding:
    if not computer.path("/sys/class/rtc/rtc0").exists():
        found = "there is none: after a power cut time stands still until a time server is reached"
        return warning("real-time clock", found, advice)
    return ok("real-time clock", computer.read("/sys/class/rtc/rtc0/name") or "rtc0")


def _gpio(computer: Computer, label: str) -> Finding:
    labels = list(computer.gpio_chips())
    if label in labels:
        return ok("GPIO", f"chip {label}")
    found = f"no chip {label}, but {', '.join(labels)}" if labels else "no chip answers"
    return warning("GPIO", found, "Is this the board you named, and may this user open /dev/gpiochip*?")


def _serial(computer: Computer, port: str, meaning: str) -> Finding:
    if computer.path(port).exists():
        return ok("serial", f"{port} ({meaning})")
    advice = f"{_APPLY}, then reboot; what needs no serial port can do without"
    return warning("serial", f"there is no {port} ({meaning})", advice)


def _memory(computer: Computer) -> Finding:
    size = computer.memory_mb()
    found = f"{size} MiB"
    if size >= _GOOD_MB:
        return ok("memory", found)
    grade = warning if size >= _NEEDED_MB else failing
    return grade("memory", found, f"1 GiB is comfortable: lower maxmemory in {_REDIS}")


def _storage(computer: Computer) -> Iterator[Finding]:
    found = storage(computer)
    yield found
    mount = computer.mount_of(STORE)
    if mount is None or found.level is Level.FAILING:
        return
    if "noatime" in mount.options:
        yield ok("mount options", "noatime")
    else:
        yield warning("mount options", "without noatime: reading writes", "Add noatime to its options in /etc/fstab")
    yield _append_policy(computer, computer.medium_of(mount))


async def examine_storage() -> AsyncIterator[Finding]:
    """Look at what the store is on here."""
    yield await asyncio.to_thread(storage, Computer())


def storage(computer: Computer) -> Finding:
    """Tell what the store is on."""
    mount = computer.mount_of(STORE)
    if mount is None:
        return warning("storage", f"it is not known what {STORE} is on", "Look with: findmnt --target /var/lib")
    medium = computer.medium_of(mount)
    if medium == "memory":
        found = f"{STORE} is in memory ({mount.kind}): a power cut takes every job"
        return failing("storage", found, f"Mount a file system of a disk at {STORE}")
    if "ro" in mount.options:
        return failing("storage", f"{STORE} cannot be written", "Mount its file system rw: look at /etc/fstab, dmesg")
    return ok("storage", f"{medium}, {mount.kind}")


def _append_policy(computer: Computer, medium: str) -> Finding:
    settings = dict(re.findall(r"^(append\w+) +(\S+)", computer.read(_REDIS), re.MULTILINE))
    policy = settings.get("appendfsync", "everysec")
    match settings.get("appendonly"), policy, medium:
        case None, _, _:
            return warning("append-only file", f"{_REDIS} does not say", "Does the gateway use another?")
        case "yes", "always", "SD":
            advice = f"appendfsync everysec in {_REDIS}, or a disk"
            found = "always, on an SD card: it wears six times as fast"
            return warning("append-only file", found, advice)
        case "yes", "everysec" | "always", _:
            return ok("append-only file", policy)
        case "yes", _, _:
            found = f"appendfsync {policy}: half a minute of jobs is lost with the power"
            return warning("append-only file", found, "Good only with a UPS; else: appendfsync everysec")
        case _:
            advice = f"appendonly yes in {_REDIS}"
            return failing("append-only file", "off: a power cut takes jobs", advice)
