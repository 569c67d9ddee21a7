"""Whether a computer is fit to be a gateway, point by point, with what to do where it is not."""

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from edge.hardware.board import Board
from edge.hardware.computer import Computer

_NEEDED_MB = 512
_GOOD_MB = 900
_DATA = "/var/lib/redis-microdcs"
_REDIS = "/etc/redis/redis-microdcs.conf"
_APPLY = "edge hw apply"


class Level(StrEnum):
    """How grave a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILING = "failing"


class Finding(msgspec.Struct, frozen=True):
    """One point: what was found, and what to do about it."""

    point: str
    level: Level
    found: str
    advice: str = ""


def check(computer: Computer, board: Board) -> Iterator[Finding]:
    """Look at every point that the board has, then at those that every computer has."""
    if board.watchdog:
        yield _watchdog(computer)
    if board.rtc:
        yield _rtc(computer, board.rtc.advice)
    if board.gpio:
        yield _gpio(computer, board.gpio.chip)
    for serial in board.serial:
        yield _serial(computer, serial.port, serial.meaning)
    yield _clock(computer)
    yield _memory(computer)
    yield from _storage(computer)


def _watchdog(computer: Computer) -> Finding:
    if not computer.path("/dev/watchdog0").exists():
        advice = f"Is its driver loaded? On a Raspberry Pi: {_APPLY}, then reboot"
        return Finding("watchdog", Level.WARNING, "there is no /dev/watchdog0: a hanging system stays as it is", advice)
    identity = computer.read("/sys/class/watchdog/watchdog0/identity") or "/dev/watchdog0"
    # Without CONFIG_WATCHDOG_SYSFS there is no state; then the settings of systemd have to do.
    fed = computer.read("/sys/class/watchdog/watchdog0/state") == "active" or _is_fed_by_systemd(computer)
    if not fed:
        return Finding("watchdog", Level.WARNING, f"{identity} is there, and nobody feeds it", f"{_APPLY}, then reboot")
    return Finding("watchdog", Level.OK, f"{identity} is fed")


def _is_fed_by_systemd(computer: Computer) -> bool:
    directories = (computer.path(f"{place}/systemd/system.conf.d") for place in ("/etc", "/run", "/usr/lib"))
    files = [computer.path("/etc/systemd/system.conf"), *(file for each in directories for file in each.glob("*.conf"))]
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file())
    return any(re.search(r"^RuntimeWatchdogSec=(?!0|off|$)", text, re.MULTILINE) for text in texts)


def _rtc(computer: Computer, advice: str) -> Finding:
    if not computer.path("/sys/class/rtc/rtc0").exists():
        found = "there is none: after a power cut time stands still until a time server is reached"
        return Finding("real-time clock", Level.WARNING, found, advice)
    return Finding("real-time clock", Level.OK, computer.read("/sys/class/rtc/rtc0/name") or "rtc0")


def _gpio(computer: Computer, label: str) -> Finding:
    labels = list(computer.gpio_chips())
    if label in labels:
        return Finding("GPIO", Level.OK, f"chip {label}")
    found = f"no chip {label}, but {', '.join(labels)}" if labels else "no chip answers"
    return Finding("GPIO", Level.WARNING, found, "Is this the board you named, and may this user open /dev/gpiochip*?")


def _serial(computer: Computer, port: str, meaning: str) -> Finding:
    if computer.path(port).exists():
        return Finding("serial", Level.OK, f"{port} ({meaning})")
    advice = f"{_APPLY}, then reboot; what needs no serial port can do without"
    return Finding("serial", Level.WARNING, f"there is no {port} ({meaning})", advice)


def _clock(computer: Computer) -> Finding:
    if computer.clock_is_kept():
        return Finding("clock", Level.OK, "synchronised")
    advice = "apt install systemd-timesyncd (or chrony), and name a time server of the plant"
    return Finding("clock", Level.WARNING, "not synchronised: the instants in job responses may be wrong", advice)


def _memory(computer: Computer) -> Finding:
    size = computer.memory_mb()
    found = f"{size} MiB"
    if size >= _GOOD_MB:
        return Finding("memory", Level.OK, found)
    level = Level.WARNING if size >= _NEEDED_MB else Level.FAILING
    return Finding("memory", level, found, f"1 GiB is comfortable: lower maxmemory in {_REDIS}")


def _storage(computer: Computer) -> Iterator[Finding]:
    mount = computer.mount_of(_DATA)
    if mount is None:
        yield Finding(
            "storage", Level.WARNING, f"it is not known what {_DATA} is on", "Look with: findmnt --target /var/lib"
        )
        return
    medium = computer.medium_of(mount)
    if medium == "memory":
        found = f"{_DATA} is in memory ({mount.kind}): a power cut takes every job"
        yield Finding("storage", Level.FAILING, found, f"Mount a file system of a disk at {_DATA}")
        return
    if "ro" in mount.options:
        yield Finding("storage", Level.FAILING, f"{_DATA} cannot be written", "Mount it rw: see the storage page")
    elif "noatime" in mount.options:
        yield Finding("storage", Level.OK, f"{medium}, {mount.kind}, noatime")
    else:
        found = f"{medium}, {mount.kind}, without noatime: reading writes"
        yield Finding("storage", Level.WARNING, found, "Add noatime to its options in /etc/fstab")
    yield _append_policy(computer, medium)


def _append_policy(computer: Computer, medium: str) -> Finding:
    settings = dict(re.findall(r"^(append\w+) +(\S+)", computer.read(_REDIS), re.MULTILINE))
    policy = settings.get("appendfsync", "everysec")
    match settings.get("appendonly"), policy, medium:
        case None, _, _:
            return Finding("append-only file", Level.WARNING, f"{_REDIS} does not say", "Does the gateway use another?")
        case "yes", "always", "SD":
            advice = f"appendfsync everysec in {_REDIS}, or a disk"
            found = "always, on an SD card: it wears six times as fast"
            return Finding("append-only file", Level.WARNING, found, advice)
        case "yes", "everysec" | "always", _:
            return Finding("append-only file", Level.OK, policy)
        case "yes", _, _:
            found = f"appendfsync {policy}: half a minute of jobs is lost with the power"
            return Finding("append-only file", Level.WARNING, found, "Good only with a UPS; else: appendfsync everysec")
        case _:
            advice = f"appendonly yes in {_REDIS}"
            return Finding("append-only file", Level.FAILING, "off: a power cut takes jobs", advice)
