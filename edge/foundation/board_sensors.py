"""Reads what a board reports about itself: temperature, undervoltage, fullness of its disk, wear of its flash."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from edge.foundation.computer import Computer

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
