"""Low disk space and low memory are reported early."""

from pathlib import Path

import pytest

from edge.features.admin import host_check
from edge.features.admin.host_check import (
    MIB,
    clock_finding,
    examine_clock,
    examine_disks,
    examine_memory,
    examine_versions,
    versions,
)
from edge.foundation.clock_sync import Clock
from edge.model.finding import Level, PublicHealthFinding, public_form


async def disk_with(monkeypatch: pytest.MonkeyPatch, place: Path, total: int, free: int) -> PublicHealthFinding:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("U", (), {"total": total, "free": free}))
    (finding,) = [public_form(disk) async for disk in examine_disks([str(place)])]
    return finding


@pytest.mark.parametrize(
    ("total", "free", "level"),
    [
        (30_000 * MIB, 20_000 * MIB, Level.OK),
        (30_000 * MIB, 1_500 * MIB, Level.WARNING),
        (30_000 * MIB, 300 * MIB, Level.FAILING),
        (900_000 * MIB, 9_000 * MIB, Level.OK),
        (0, 0, Level.FAILING),
    ],
)
async def test_disk_finding_depends_on_the_free_space(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, total: int, free: int, level: Level
) -> None:
    finding = await disk_with(monkeypatch, tmp_path, total, free)
    assert finding.level is level
    assert bool(finding.advice) is (level is not Level.OK)


async def test_missing_directory_uses_its_parent_and_a_disk_is_found_once(tmp_path: Path) -> None:
    findings = [public_form(disk) async for disk in examine_disks([str(tmp_path), str(tmp_path / "not" / "yet")])]
    assert [finding.subject for finding in findings] == [f"disk {tmp_path}"]


@pytest.mark.parametrize(("free", "level"), [(500_000, Level.OK), (80_000, Level.WARNING), (20_000, Level.FAILING)])
async def test_memory_finding_depends_on_the_available_memory(tmp_path: Path, free: int, level: Level) -> None:
    file = tmp_path / "meminfo"
    file.write_text(f"MemTotal:        1000000 kB\nMemFree:  1 kB\nMemAvailable:    {free} kB\nHugePages_Total:  0\n")
    (finding,) = [public_form(item) async for item in examine_memory(file)]
    assert finding.level is level


@pytest.mark.parametrize(
    ("known", "level"),
    [(Clock.SYNCHRONISED, Level.OK), (Clock.UNSYNCHRONISED, Level.WARNING), (Clock.UNKNOWN, Level.WARNING)],
)
def test_an_unsynchronised_clock_is_a_warning(known: Clock, level: Level) -> None:
    assert clock_finding(known).level is level


async def test_clock_of_this_machine_is_examined() -> None:
    (finding,) = [public_form(item) async for item in examine_clock()]
    assert finding.subject == "clock"


async def test_versions_contain_the_product_and_its_libraries() -> None:
    (finding,) = [public_form(version) async for version in examine_versions()]
    assert finding.level is Level.OK
    assert "microdcs-edge 0." in finding.found
    assert set(host_check.LIBRARIES) <= versions().keys()


def test_system_without_a_release_file_has_its_generic_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file() -> dict[str, str]:
        raise OSError

    monkeypatch.setattr("platform.freedesktop_os_release", no_file)
    assert versions()["system"] == "Linux"
