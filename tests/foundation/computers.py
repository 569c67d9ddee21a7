"""Fake computers made of files, for the tests of hardware detection."""

from collections.abc import Mapping
from pathlib import Path

from edge.foundation.computer import Computer

HEALTHY = {
    "/proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0",
    "/proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0",
    "/proc/meminfo": "MemTotal:        3884396 kB\nMemFree:         120 kB\n",
    "/proc/mounts": "/dev/mmcblk0p2 / ext4 rw,noatime 0 0\nproc /proc proc rw,relatime 0 0\n",
    "/sys/block/mmcblk0/device/type": "SD\n",
    "/sys/class/watchdog/watchdog0/identity": "Broadcom BCM2835 Watchdog timer\n",
    "/sys/class/watchdog/watchdog0/state": "active\n",
    "/sys/class/rtc/rtc0/name": "rtc-ds1307 1-0068\n",
    "/dev/watchdog0": "",
    "/dev/serial0": "",
    "/dev/gpiochip0": "pinctrl-bcm2711",
    "/etc/microdcs-edge/store.conf": "appendonly yes\nappendfsync everysec\n",
    "/boot/firmware/config.txt": "dtparam=audio=on\n\n[cm4]\notg_mode=1\n",
}
"""A Raspberry Pi 4 on which nothing is wrong. A GPIO chip's file holds the label that the kernel would tell."""


def computer(root: Path, files: Mapping[str, str | None]) -> Computer:
    """Make a computer; None removes a file."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return Computer(root, lambda chip: chip.read_text() or None)
