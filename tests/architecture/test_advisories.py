"""Minimum and locked versions exclude known vulnerabilities of the advisory list."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.architecture.sources import ROOT, text

ADVISORIES: dict[str, dict[str, str]] = tomllib.loads(text(Path("tests/architecture/advisories.toml")))
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_EXTRAS = _PROJECT["optional-dependencies"].values()
REQUIREMENTS = [Requirement(line) for lines in (_PROJECT["dependencies"], *_EXTRAS) for line in lines]


@pytest.mark.parametrize("name", ADVISORIES)
def test_minimum_versions_exclude_known_vulnerabilities(name: str) -> None:
    vulnerable = Version(f"{ADVISORIES[name]['fixed']}.dev0")
    admitting = [
        str(requirement)
        for requirement in REQUIREMENTS
        if requirement.name == name and requirement.specifier.contains(vulnerable, True)
    ]
    assert admitting == []


@pytest.mark.parametrize("lock", ["runtime", "demo", "build", "dev", "docs"])
def test_locked_versions_have_no_known_vulnerability(lock: str) -> None:
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text(Path(f".ci/locks/{lock}.lock")), re.MULTILINE))
    vulnerable = {
        name: version
        for name, version in locked.items()
        if name in ADVISORIES and Version(version) < Version(ADVISORIES[name]["fixed"])
    }
    assert vulnerable == {}
    assert len(locked) > 1
