"""The identification of a computer is read from its files; a missing file is not an error."""

import subprocess
import sys
from pathlib import Path

import pytest

from edge.foundation.computer import BoardSensors, Computer, Mount, child_environment, chip_label
from tests.foundation.computers import HEALTHY, computer


def test_computer_without_identification_is_read(tmp_path: Path) -> None:
    mute = computer(tmp_path, {})
    assert (mute.model(), mute.is_virtual(), mute.memory_mb(), list(mute.gpio_chips())) == ("", False, 0, [])
    assert mute.mount_of("/var") is None


def test_model_memory_and_chips_of_a_pi_are_read(tmp_path: Path) -> None:
    pi = computer(tmp_path, HEALTHY)
    assert pi.model() == "Raspberry Pi 4 Model B Rev 1.4"
    assert pi.memory_mb() == 3793
    assert list(pi.gpio_chips()) == ["pinctrl-bcm2711"]


def test_manufacturer_and_product_of_an_ipc_are_read(tmp_path: Path) -> None:
    dmi = {"/sys/class/dmi/id/sys_vendor": "ACME\n", "/sys/class/dmi/id/product_name": "Box 3000\n"}
    assert computer(tmp_path, dmi).model() == "ACME Box 3000"


def test_innermost_and_last_mount_is_used(tmp_path: Path) -> None:
    mounts = (
        "/dev/sda1 / ext4 rw 0 0",
        "/dev/sda2 /var ext4 rw 0 0",
        "/dev/sda3 /var/lib\\040x xfs rw 0 0",
        "/dev/sdb1 /var ext4 ro 0 0",
    )
    pi = computer(tmp_path, {"/proc/mounts": "\n".join(mounts)})
    assert pi.mount_of("/var/lib") == Mount("/dev/sdb1", "ext4", ("ro",))
    assert pi.mount_of("/var/lib x/y") == Mount("/dev/sda3", "xfs", ("rw",))
    assert pi.mount_of("/variety") == Mount("/dev/sda1", "ext4", ("rw",))


def test_the_medium_of_a_mount_is_reported(tmp_path: Path) -> None:
    pi = computer(tmp_path, HEALTHY | {"/sys/block/mmcblk1/device/type": "MMC\n"})
    assert [
        pi.medium_of(Mount(device, kind, ()))
        for device, kind in (("/dev/mmcblk0p2", "ext4"), ("/dev/mmcblk1p1", "ext4"), ("/dev/nvme0n1p2", "ext4"))
    ] == ["SD", "MMC", "disk"]
    assert pi.medium_of(Mount("overlayroot", "overlay", ())) == "memory"


def test_chips_and_memory_of_this_computer_are_read() -> None:
    assert chip_label(Path("/dev/null")) is None
    assert chip_label(Path("/dev/none")) is None
    assert Computer().memory_mb() > 0


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


def test_child_imports_modules_from_the_path_of_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("print('found')")
    monkeypatch.syspath_prepend(tmp_path)
    command = (sys.executable, "-c", "import only_here, edge.features.flows.worker_child")
    found = subprocess.run(command, env=child_environment(), cwd="/", capture_output=True, text=True, check=True)
    assert found.stdout == "found\n"
