"""Reads the properties and sensors of a Linux computer, or of a mounted image; the environment of child processes."""

import fcntl
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

_CHIP_INFO = struct.Struct("32s32sI")
_GET_CHIP_INFO = 0x8044B401
"""GPIO_GET_CHIPINFO_IOCTL of linux/gpio.h: name, label, number of lines."""


class Mount(Struct, frozen=True):
    """A file system and how it is mounted."""

    device: str
    kind: str
    options: tuple[str, ...]


def chip_label(device: Path) -> str | None:
    """Read the label of a GPIO chip from the kernel; None when it is unavailable."""
    try:
        chip = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(chip, _GET_CHIP_INFO, bytes(_CHIP_INFO.size))
    except OSError:
        return None
    finally:
        os.close(chip)
    return str(_CHIP_INFO.unpack(answer)[1].rstrip(b"\0").decode(errors="replace"))


class Computer(Struct, frozen=True):
    """A computer below a root directory; `chip_label` reads from the kernel."""

    root: Path = Path("/")
    chip_label: Callable[[Path], str | None] = chip_label

    def path(self, name: str) -> Path:
        """Return the path of a file of the computer below its root."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str:
        """Read a file, empty when absent; NUL separators of the kernel become line breaks."""
        try:
            return self.path(name).read_bytes().decode(errors="replace").replace("\0", "\n").strip()
        except OSError:
            return ""

    def model(self) -> str:
        """Return the model name of the board; empty when unknown."""
        vendor, product = (self.read(f"/sys/class/dmi/id/{key}") for key in ("sys_vendor", "product_name"))
        return self.read("/proc/device-tree/model") or " ".join(filter(None, (vendor, product)))

    def is_virtual(self) -> bool:
        """Return whether this is a container or a virtual machine."""
        hypervisor = re.search(r"^flags\s*:.*\bhypervisor\b", self.read("/proc/cpuinfo"), re.MULTILINE)
        return bool(hypervisor) or self.path("/run/systemd/container").exists()

    def gpio_chips(self) -> Iterator[str]:
        """Yield the labels of the GPIO chips."""
        for device in sorted(self.path("/dev").glob("gpiochip*")):
            if label := self.chip_label(device):
                yield label

    def memory_mb(self) -> int:
        """Return the size of the memory in MiB; 0 when unknown."""
        match = re.search(r"^MemTotal:\s*(\d+) kB", self.read("/proc/meminfo"), re.MULTILINE)
        return int(match[1]) // 1024 if match else 0

    def mount_of(self, name: str) -> Mount | None:
        """Find the file system that a directory is on."""
        best, mount = "", None
        for line in self.read("/proc/mounts").splitlines():
            device, raw, kind, options, *_ = line.split(" ")
            point = raw.replace("\\040", " ")
            holds = name == point or name.startswith(point.rstrip("/") + "/")
            if holds and len(point) >= len(best):
                best, mount = point, Mount(device, kind, tuple(options.split(",")))
        return mount

    def medium_of(self, mount: Mount) -> str:
        """Return the medium of a file system: `SD`, `MMC` (eMMC), `disk` (SATA, NVMe, ...) or `memory`."""
        if mount.kind in {"tmpfs", "ramfs", "overlay"}:
            return "memory"
        card = re.match(r"/dev/(mmcblk\d+)", mount.device)
        return (self.read(f"/sys/block/{card[1]}/device/type") or "SD") if card else "disk"


_TEMPERATURE: Final = "/sys/class/thermal/thermal_zone0/temp"
_UNDERVOLTAGE: Final = "rpi_volt"
"""The name of the hwmon device of a Raspberry Pi; its alarm is 1 for two seconds after the supply was too low."""
_WEAR_STEP: Final = 0.1
"""An eMMC reports its used life in steps of 10 percent (JEDEC 84-B51, DEVICE_LIFE_TIME_EST)."""


class BoardSensors:
    """Looks for the sensors once, and reads those that there are."""

    def __init__(self, computer: Computer | None = None) -> None:
        self._computer = computer or Computer()
        self._undervoltage = next(
            (
                f"/{file.relative_to(self._computer.root)}/in0_lcrit_alarm"
                for file in sorted(self._computer.path("/sys/class/hwmon").glob("hwmon*"))
                if _text(file / "name") == _UNDERVOLTAGE
            ),
            None,
        )
        self._lives = [
            f"/{file.relative_to(self._computer.root)}"
            for file in sorted(self._computer.path("/sys/block").glob("mmcblk*/device/life_time"))
        ]

    def values(self) -> Iterator[tuple[str, float]]:
        """Yield the readable values that change slowly, with the names of their tags."""
        temperature = _number(self._computer.read(_TEMPERATURE))
        if temperature is not None:
            yield "gateway.cpu_temperature", round(temperature / 1000)
        disk = os.statvfs(self._computer.root)
        if disk.f_blocks:
            yield "gateway.disk_fullness", round(1 - disk.f_bavail / disk.f_blocks, 2)
        wear = [step for live in self._lives for step in _steps(self._computer.read(live))]
        if wear:
            yield "gateway.flash_wear", round(max(wear) * _WEAR_STEP, 1)

    def supply(self) -> Iterator[tuple[str, float]]:
        """Yield whether the supply was too low in the last two seconds, if the board reports it."""
        if self._undervoltage:
            alarm = _number(self._computer.read(self._undervoltage))
            if alarm is not None:
                yield "gateway.undervoltage", int(alarm)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _steps(text: str) -> Iterator[int]:
    """Yield the steps of a life time such as `0x01 0x03`; 0 stands for an unknown one."""
    for part in text.split():
        try:
            yield int(part, 16)
        except ValueError:
            return


def child_environment() -> dict[str, str]:
    """Return the environment of this process, with its module path: the package is installed outside of Python's."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
