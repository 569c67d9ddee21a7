"""`edge hw` reports the board and its suitability, and writes only the files that were requested."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from edge.cli import main
from tests.foundation.computers import HEALTHY, computer


def hw(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["hw", *arguments, "--root", str(root)])


def test_the_board_is_reported(tmp_path: Path) -> None:
    computer(tmp_path, HEALTHY)
    assert hw(tmp_path, "detect").output == "rpi4  Raspberry Pi 4  (Raspberry Pi 4 Model B Rev 1.4)\n"
    assert json.loads(hw(tmp_path, "detect", "--json").output)["board"] == "rpi4"


def test_unknown_board_ends_with_status_1_and_advice(tmp_path: Path) -> None:
    answer = hw(tmp_path, "detect")
    assert answer.exit_code == 1
    assert "--board" in answer.stderr


def test_check_reports_every_finding_and_ends_with_the_worst(tmp_path: Path) -> None:
    computer(tmp_path, HEALTHY)
    assert hw(tmp_path, "check", "--board", "ipc-x86").exit_code == 0
    computer(tmp_path, HEALTHY | {"/dev/serial0": None})
    suspicious = hw(tmp_path, "check")
    assert suspicious.exit_code == 1
    assert "there is no /dev/serial0" in suspicious.output
    computer(tmp_path, {"/etc/microdcs-edge/store.conf": "appendonly no\n"})
    failing = hw(tmp_path, "check", "--board", "sim", "--json")
    assert failing.exit_code == 2
    assert json.loads(failing.output)["level"] == "failing"


def test_check_of_a_mounted_system_excludes_the_clock_of_this_machine(tmp_path: Path) -> None:
    def subjects(*root: str) -> set[str]:
        answer = CliRunner().invoke(main, ["hw", "check", "--board", "sim", "--json", *root])
        return {finding["subject"] for finding in json.loads(answer.output)["findings"]}

    computer(tmp_path, HEALTHY)
    assert subjects() >= {"clock", "memory"}
    assert "clock" not in subjects("--root", str(tmp_path))


def test_a_dry_run_shows_the_difference_and_writes_nothing(tmp_path: Path) -> None:
    computer(tmp_path, HEALTHY)
    before = sorted(tmp_path.rglob("*"))
    answer = hw(tmp_path, "apply", "--dry-run", "--with", "rtc-ds3231")
    assert answer.exit_code == 0
    assert "+include microdcs-edge.txt\n" in answer.output
    assert "+dtoverlay=i2c-rtc,ds3231\n" in answer.output
    assert "rpi4: nothing was written\n" in answer.output
    assert sorted(tmp_path.rglob("*")) == before


def test_second_call_finds_no_difference(tmp_path: Path) -> None:
    computer(tmp_path, HEALTHY)
    assert "rpi4: reboot, then: edge hw check\n" in hw(tmp_path, "apply").output
    assert hw(tmp_path, "apply").output == "rpi4: every file is up to date\n"
    assert json.loads(hw(tmp_path, "apply", "--json").output) == {"board": "rpi4", "changed": []}
    assert hw(tmp_path, "apply", "--dry-run").output == "rpi4: every file is up to date\n"
