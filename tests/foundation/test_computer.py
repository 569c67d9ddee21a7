"""The identification of a computer is read from its files; a missing file is not an error."""

from pathlib import Path

from edge.foundation.computer import Computer, Mount, chip_label
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
