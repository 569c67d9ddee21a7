"""Reads the properties of a Linux computer, or of a mounted image, below /proc, /sys, /dev and /etc."""

import fcntl
import os
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

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
        found = re.search(r"^MemTotal:\s*(\d+) kB", self.read("/proc/meminfo"), re.MULTILINE)
        return int(found[1]) // 1024 if found else 0

    def mount_of(self, name: str) -> Mount | None:
        """Find the file system that a directory is on."""
        best, found = "", None
        for line in self.read("/proc/mounts").splitlines():
            device, raw, kind, options, *_ = line.split(" ")
            point = raw.replace("\\040", " ")
            holds = name == point or name.startswith(point.rstrip("/") + "/")
            if holds and len(point) >= len(best):
                best, found = point, Mount(device, kind, tuple(options.split(",")))
        return found

    def medium_of(self, mount: Mount) -> str:
        """Return the medium of a file system: `SD`, `MMC` (eMMC), `disk` (SATA, NVMe, ...) or `memory`."""
        if mount.kind in {"tmpfs", "ramfs", "overlay"}:
            return "memory"
        card = re.match(r"/dev/(mmcblk\d+)", mount.device)
        return (self.read(f"/sys/block/{card[1]}/device/type") or "SD") if card else "disk"
