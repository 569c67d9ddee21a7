"""The generated files of a board are valid for the programs that read them, and are written once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from edge.features.admin.board import profile_directory, read_boards, wanted_files, write
from edge.foundation.errors import Refused
from tests.foundation.computers import HEALTHY, computer

HW = Path(__file__).parents[3] / "hw"
BOARDS = read_boards(profile_directory() / "boards")
CONFIG = "boot/firmware/config.txt"


def texts(root: Path, board: str, *options: str) -> dict[str, str]:
    files = wanted_files(computer(root, HEALTHY), BOARDS[board], HW, options)
    return {str(file.path.relative_to(root)): file.wanted for file in files}


@pytest.mark.parametrize("board", BOARDS)
def test_second_run_changes_no_files(tmp_path: Path, board: str) -> None:
    pi = computer(tmp_path, HEALTHY)
    options = BOARDS[board].boot.options if BOARDS[board].boot else {}  # type: ignore[union-attr]
    paths = write(wanted_files(pi, BOARDS[board], HW, options))
    assert tmp_path / "etc/udev/rules.d/60-microdcs-edge.rules" in paths
    again = wanted_files(pi, BOARDS[board], HW, options)
    assert [file.path for file in again if file.differs] == []
    assert write(again) == []
    assert not list(tmp_path.rglob(".*.partial"))


def test_watchdog_timeout_is_within_the_limit_of_the_chip(tmp_path: Path) -> None:
    assert "RuntimeWatchdogSec=14\n" in texts(tmp_path, "rpi4")["etc/systemd/system.conf.d/50-microdcs-edge.conf"]


def test_service_may_open_the_devices_of_the_board(tmp_path: Path) -> None:
    drop_in = "etc/systemd/system/microdcs-edge.service.d/50-hardware.conf"
    pi, revpi = texts(tmp_path, "rpi5")[drop_in], texts(tmp_path, "revpi-connect-4")[drop_in]
    assert "DeviceAllow=char-gpiochip rw\n" in pi
    assert "DeviceAllow=/dev/ttyAMA0 rw\n" in pi
    assert "gpio" not in revpi
    assert drop_in not in texts(tmp_path, "sim")


def test_config_txt_gets_one_line_and_keeps_the_rest(tmp_path: Path) -> None:
    config = texts(tmp_path, "rpi4")[CONFIG]
    assert config == "dtparam=audio=on\n\n[cm4]\notg_mode=1\n\n[all]\ninclude microdcs-edge.txt\n"


def test_boot_option_is_written_if_requested(tmp_path: Path) -> None:
    included = "boot/firmware/microdcs-edge.txt"
    assert "ds3231" not in texts(tmp_path, "rpi4")[included]
    assert "dtoverlay=i2c-rtc,ds3231\n" in texts(tmp_path, "rpi4", "rtc-ds3231")[included]


def test_unknown_boot_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no option turbo"):
        texts(tmp_path, "rpi4", "turbo")
    with pytest.raises(Refused, match="no option rtc-ds3231"):
        texts(tmp_path, "ipc-x86", "rtc-ds3231")


def test_missing_boot_partition_is_reported(tmp_path: Path) -> None:
    bare = computer(tmp_path, HEALTHY | {f"/{CONFIG}": None})
    with pytest.raises(Refused, match=r"there is no .*config\.txt"):
        wanted_files(bare, BOARDS["rpi4"], HW)


def test_unwritable_file_is_reported(tmp_path: Path) -> None:
    pi = computer(tmp_path, HEALTHY | {"/etc/udev": "a file where a directory belongs"})
    with pytest.raises(Refused):
        write(wanted_files(pi, BOARDS["rpi4"], HW))


@pytest.mark.parametrize("rules", sorted((HW / "udev").glob("*.rules")), ids=lambda file: file.name)
def test_udev_rules_are_valid(rules: Path, tmp_path: Path) -> None:
    udevadm = shutil.which("udevadm")
    if not udevadm or subprocess.run([udevadm, "verify", "--help"], check=False, capture_output=True).returncode:
        pytest.skip("needs udevadm verify, of systemd 254 and newer")
    examples = tmp_path / rules.name
    examples.write_text(rules.read_text(encoding="utf-8").replace("\n#SUBSYSTEM", "\nSUBSYSTEM"), encoding="utf-8")
    # Elsewhere than on a gateway the group of GPIO chips is not there.
    command = [udevadm, "verify", "--resolve-names=never", "--no-style", str(examples)]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize("source", sorted((HW / "overlays").glob("*.dts")), ids=lambda file: file.stem)
def test_a_device_tree_overlay_compiles(source: Path, tmp_path: Path) -> None:
    if not (dtc := shutil.which("dtc")):
        pytest.skip("needs dtc: apt install device-tree-compiler")
    path = tmp_path / "overlay.dtbo"
    compiled = subprocess.run(
        [dtc, "-@", "-W", "no-unit_address_vs_reg", "-I", "dts", "-O", "dtb", "-o", path, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (compiled.returncode, compiled.stderr) == (0, "")
    assert path.read_bytes().startswith(bytes.fromhex("d00dfeed"))


def test_written_files_are_readable_by_all_users_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        (first, *_) = write(wanted_files(computer(tmp_path, HEALTHY), BOARDS["sim"], HW))
        assert first.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
