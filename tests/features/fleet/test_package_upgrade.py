"""An upgrade installs a newer version of this package from its repository, and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from edge.features.fleet.package_upgrade import run_program, upgrade_package
from edge.foundation.errors import Refused

POLICY = "microdcs-edge:\n  Installed: 1.0\n  Candidate: {}\n"
MADISON = " microdcs-edge | 1.2 | file:/repo trixie/main\n microdcs-edge | 1.1 | file:/repo trixie/main\n"


class Apt:
    """Programs that answer as apt does; `failing` has the first words of those that fail."""

    def __init__(self, candidate: str = "1.2", failing: Mapping[str, int] | None = None) -> None:
        self.calls: list[Sequence[str]] = []
        self.installed = "1.0"
        self._candidate = candidate
        self._failing = failing or {}

    def __call__(self, command: Sequence[str]) -> tuple[int, str]:
        self.calls.append(command)
        words = " ".join(command[:2])
        if words in self._failing:
            return self._failing[words], "E: it failed"
        match command:
            case ["dpkg", _, target, _, before]:
                return int(target <= before), ""
            case ["apt-cache", "policy", *_]:
                return 0, POLICY.format(self._candidate)
            case ["apt-cache", "madison", *_]:
                return 0, MADISON
            case ["apt-get", "install", *_, package]:
                self.installed = package.partition("=")[2]
                return 0, "Setting up"
            case ["dpkg-query", *_]:
                return 0, f"{self.installed} installed"
            case _:
                return 0, ""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The file that names the repository."""
    file = tmp_path / "microdcs-edge.sources"
    file.touch()
    return file


@pytest.mark.parametrize(("version", "installed"), [("", "1.2"), ("1.1", "1.1")])
def test_named_or_newest_version_is_installed(sources: Path, version: str, installed: str) -> None:
    apt = Apt()
    assert upgrade_package(version, apt, sources).startswith(f"microdcs-edge {installed} replaces 1.0")
    update, install = (item for item in apt.calls if item[0] == "apt-get")
    assert {f"-oDir::Etc::SourceList={sources}", "-oDir::Etc::SourceParts=/dev/null"} <= set(update)
    assert {"--only-upgrade", "--no-remove"} <= set(install)
    assert install[-1] == f"microdcs-edge={installed}"
    for call in (update, install):
        assert "-oAPT::Get::AllowUnauthenticated=false" in call


@pytest.mark.parametrize(("version", "reason"), [("0.9", "has no microdcs-edge 0.9"), ("3", "has no microdcs-edge 3")])
def test_version_missing_in_the_repository_is_refused(sources: Path, version: str, reason: str) -> None:
    apt = Apt()
    with pytest.raises(Refused, match=reason):
        upgrade_package(version, apt, sources)
    assert not [call for call in apt.calls if call[1] == "install"]


def test_older_version_of_the_repository_is_refused(sources: Path) -> None:
    apt = Apt(failing={"dpkg --compare-versions": 1})
    with pytest.raises(Refused, match=r"1\.1 is not newer than 1\.0"):
        upgrade_package("1.1", apt, sources)


def test_installed_version_is_kept(sources: Path) -> None:
    apt = Apt("1.0")
    assert upgrade_package("", apt, sources) == "microdcs-edge 1.0 is installed already"
    assert not [call for call in apt.calls if call[1] == "install"]


@pytest.mark.parametrize("step", ["apt-get update", "apt-cache policy", "apt-get install", "dpkg-query --show"])
def test_failed_step_ends_the_upgrade_with_its_output(sources: Path, step: str) -> None:
    with pytest.raises(Refused, match=f"{step} ended with 100: E: it failed"):
        upgrade_package("", Apt(failing={step: 100}), sources)


def test_machine_without_a_repository_is_not_upgraded(tmp_path: Path) -> None:
    apt = Apt()
    with pytest.raises(Refused, match="does not exist"):
        upgrade_package("", apt, tmp_path / "none")
    assert apt.calls == []


def test_program_runs_without_the_environment_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_OF_OURS", "1")
    status, output = run_program(("/usr/bin/env",))
    assert status == 0
    assert "OURS" not in output
    assert run_program(("/bin/sh", "-c", "echo no; exit 3")) == (3, "no\n")
