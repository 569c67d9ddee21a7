"""Each point of a board is reported: suitable, or its fault with advice."""

from pathlib import Path

import pytest

from edge.features.admin.board import profile_directory, read_boards
from edge.features.admin.board_check import examine_board
from edge.foundation.computer import Computer
from edge.model.finding import Level, PublicHealthFinding, public_form
from tests.foundation.computers import HEALTHY, computer

BOARDS = read_boards(profile_directory() / "boards")
MOUNTS = "/proc/mounts"
REDIS = "/etc/microdcs-edge/store.conf"


def point(computer: Computer, board: str, subject: str) -> PublicHealthFinding:
    (found,) = (
        public_form(finding) for finding in examine_board(computer, BOARDS[board]) if finding.subject == subject
    )
    return found


def test_healthy_board_has_no_faults(tmp_path: Path) -> None:
    findings = list(map(public_form, examine_board(computer(tmp_path, HEALTHY), BOARDS["rpi4"])))
    assert {finding.subject for finding in findings} == {
        "GPIO",
        "append-only file",
        "memory",
        "mount options",
        "real-time clock",
        "serial",
        "storage",
        "watchdog",
    }
    assert [finding for finding in findings if finding.level is not Level.OK or finding.advice] == []


@pytest.mark.parametrize(
    ("change", "subject", "level", "reported"),
    [
        ({"/dev/watchdog0": None}, "watchdog", Level.WARNING, "no /dev/watchdog0"),
        ({"/sys/class/watchdog/watchdog0/state": "inactive"}, "watchdog", Level.WARNING, "is not used"),
        ({"/dev/gpiochip0": "pinctrl-rp1"}, "GPIO", Level.WARNING, "no chip pinctrl-bcm2711, but pinctrl-rp1"),
        ({"/dev/gpiochip0": None}, "GPIO", Level.WARNING, "no chip answers"),
        ({"/dev/serial0": None}, "serial", Level.WARNING, "no /dev/serial0"),
        ({"/proc/meminfo": "MemTotal: 614400 kB"}, "memory", Level.WARNING, "600 MiB"),
        ({"/proc/meminfo": "MemTotal: 262144 kB"}, "memory", Level.FAILING, "256 MiB"),
        ({MOUNTS: "/dev/mmcblk0p2 / ext4 rw,relatime 0 0"}, "mount options", Level.WARNING, "without noatime"),
        ({MOUNTS: "overlayroot / overlay rw 0 0"}, "storage", Level.FAILING, "in memory"),
        ({MOUNTS: "/dev/sda1 / ext4 ro,noatime 0 0"}, "storage", Level.FAILING, "cannot be written"),
        ({MOUNTS: ""}, "storage", Level.WARNING, "is unknown"),
        ({REDIS: "appendonly yes\nappendfsync always"}, "append-only file", Level.WARNING, "SD card"),
        ({REDIS: "appendonly yes\nappendfsync no"}, "append-only file", Level.WARNING, "half a minute"),
        ({REDIS: "appendonly no"}, "append-only file", Level.FAILING, "off"),
        ({REDIS: None}, "append-only file", Level.WARNING, "not set in"),
    ],
)
def test_board_fault_is_reported_with_its_level(
    tmp_path: Path, change: dict[str, str | None], subject: str, level: Level, reported: str
) -> None:
    finding = point(computer(tmp_path, HEALTHY | change), "rpi4", subject)
    assert (finding.level, reported in finding.found) == (level, True), finding
    assert bool(finding.advice) == (level is not Level.OK)


def test_missing_clock_is_reported_with_the_advice_of_the_board(tmp_path: Path) -> None:
    (found,) = (
        public_form(finding)
        for finding in examine_board(computer(tmp_path, {}), BOARDS["rpi5"])
        if finding.subject == "real-time clock"
    )
    assert "battery at J5" in found.advice


@pytest.mark.parametrize(("setting", "level"), [("14", Level.OK), ("0", Level.WARNING), ("off", Level.WARNING)])
def test_watchdog_without_kernel_state_is_judged_by_systemd_settings(
    tmp_path: Path, setting: str, level: Level
) -> None:
    files = {
        "/sys/class/watchdog/watchdog0/state": None,
        "/etc/systemd/system.conf.d/x.conf": f"RuntimeWatchdogSec={setting}\n",
    }
    (found,) = (
        public_form(finding)
        for finding in examine_board(computer(tmp_path, HEALTHY | files), BOARDS["rpi4"])
        if finding.subject == "watchdog"
    )
    assert found.level is level


@pytest.mark.parametrize(("medium", "policy"), [("MMC", "always"), ("SD", "everysec")])
def test_recommended_fsync_policy_depends_on_the_medium(tmp_path: Path, medium: str, policy: str) -> None:
    files = {"/sys/block/mmcblk0/device/type": medium, REDIS: f"appendonly yes\nappendfsync {policy}\n"}
    (found,) = (
        public_form(finding)
        for finding in examine_board(computer(tmp_path, HEALTHY | files), BOARDS["rpi4"])
        if finding.subject == "append-only file"
    )
    assert found.level is Level.OK
