"""The board is detected by its vendor texts; an unknown board is refused."""

from pathlib import Path

import pytest

from edge.features.admin.hardware.board import profile_directory, read_boards
from edge.features.admin.hardware.detect import detect
from edge.foundation.errors import Refused
from tests.foundation.computers import computer

BOARDS = read_boards(profile_directory() / "boards")
MODEL, COMPATIBLE = "/proc/device-tree/model", "/proc/device-tree/compatible"
DMI = {"/sys/class/dmi/id/sys_vendor": "ACME", "/sys/class/dmi/id/product_name": "Box"}


@pytest.mark.parametrize(
    ("files", "board"),
    [
        ({MODEL: "Raspberry Pi 4 Model B Rev 1.5\0"}, "rpi4"),
        ({MODEL: "Raspberry Pi 5 Model B Rev 1.0\0"}, "rpi5"),
        ({MODEL: "Raspberry Pi Compute Module 4 Rev 1.1\0"}, "cm4"),
        (
            {MODEL: "Raspberry Pi Compute Module 4S Rev 1.0", COMPATIBLE: "kunbus,revpi-connect4\0a\0"},
            "revpi-connect-4",
        ),
        ({MODEL: "Raspberry Pi Compute Module 5 Rev 1.0", COMPATIBLE: "a\0kunbus,revpi-connect5\0"}, "revpi-connect-5"),
        (DMI, "ipc-x86"),
        (DMI | {"/proc/cpuinfo": "processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n"}, "sim"),
        ({"/run/systemd/container": "systemd-nspawn"}, "sim"),
    ],
)
def test_a_board_is_recognised(tmp_path: Path, files: dict[str, str], board: str) -> None:
    assert detect(computer(tmp_path, files), BOARDS) == board


@pytest.mark.parametrize("model", ["", "Raspberry Pi 3 Model B", "Raspberry Pi Compute Module 4S Rev 1.0"])
def test_board_without_a_profile_is_refused_with_its_identification(tmp_path: Path, model: str) -> None:
    with pytest.raises(Refused) as raised:
        detect(computer(tmp_path, {MODEL: model}), BOARDS)
    assert model in raised.value.message
    assert "--board" in raised.value.advice
