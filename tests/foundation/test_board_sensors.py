"""Sensor values of a board become tags; missing sensors are omitted."""

from pathlib import Path

from edge.foundation.board_sensors import BoardSensors
from edge.foundation.computer import Computer


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_raspberry_pi_with_emmc_reports_all_values(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "48312\n")
    put(tmp_path, "sys/class/hwmon/hwmon0/name", "cpu_thermal\n")
    put(tmp_path, "sys/class/hwmon/hwmon1/name", "rpi_volt\n")
    put(tmp_path, "sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1\n")
    put(tmp_path, "sys/block/mmcblk0/device/life_time", "0x01 0x03\n")
    sensors = BoardSensors(Computer(tmp_path))
    values = dict(sensors.values())
    assert 0 <= values.pop("gateway.disk_fullness") <= 1
    assert values == {"gateway.cpu_temperature": 48, "gateway.flash_wear": 0.3}
    assert dict(sensors.supply()) == {"gateway.undervoltage": 1}


def test_unreadable_values_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/thermal/thermal_zone0/temp", "no number")
    put(tmp_path, "sys/class/hwmon/hwmon0/name", "rpi_volt")
    put(tmp_path, "sys/block/mmcblk0/device/life_time", "unknown")
    sensors = BoardSensors(Computer(tmp_path))
    assert dict(sensors.values()).keys() == {"gateway.disk_fullness"}
    assert dict(sensors.supply()) == {}


def test_sensors_of_this_computer_can_be_read() -> None:
    assert "gateway.disk_fullness" in dict(BoardSensors().values())
