"""A release has one version everywhere, and a note that a person can read."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from debian.manual_pages import heading
from edge import __version__
from tests.architecture.sources import ROOT, project_files, text

CHANGELOG = text(Path("CHANGELOG.md"))
WHAT_IT_DOES = "What it does"
WHAT_TO_KNOW = "What to know when you come from an earlier build"
LINES_OF_A_SECTION = 80
_RELATIVE_FIGURE = re.compile(
    r"\b(?:a|an|one|two|three) (?:half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth)s? (?:less|more|of the)\b"
    r"|\d+ % (?:less|more|faster|slower)|\b(?:two|three|four|\d+) times (?:as|faster|less|more)",
)


def _notes() -> dict[str, str]:
    """Return the note of each release by its version, the newest first."""
    parts = re.split(r"^## \[([\w.]+)\](?: - \d{4}-\d\d-\d\d)?\n", CHANGELOG, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_newest_note_and_package_have_the_version_of_the_program() -> None:
    assert list(_notes())[:2] == ["Unreleased", __version__]
    assert text(Path("debian/changelog")).startswith(f"microdcs-edge ({__version__}) ")


def test_pages_and_schemas_name_the_version_of_the_program() -> None:
    named = {
        (str(path), version)
        for path in project_files()
        if path.suffix == ".md" or path.parts[0] == "ansible"
        for version in re.findall(r"\b(\d+\.\d+\.\d+)\+deb\d+u\d+", text(path))
    }
    assert {version for _, version in named} == {__version__}, named
    assert json.loads(text(Path("schemas/asyncapi.json")))["info"]["version"] == __version__


def test_manual_pages_name_the_version_of_the_program() -> None:
    assert heading("edge", 1, "Runs jobs.")[0].endswith(f'"microdcs-edge {__version__}"')


@pytest.mark.slow
def test_bill_of_materials_names_the_version_of_the_program(tmp_path: Path) -> None:
    subprocess.run([".ci/sbom", str(tmp_path / "sbom.json")], check=True)
    component = json.loads((tmp_path / "sbom.json").read_text())["metadata"]["component"]
    assert (component["name"], component["version"]) == ("microdcs-edge", __version__)


@pytest.mark.parametrize("version", _notes())
def test_note_of_a_release_has_two_short_sections(version: str) -> None:
    sections = re.split(r"^### (.+)\n", _notes()[version], flags=re.MULTILINE)[1:]
    assert sections[::2] == [WHAT_IT_DOES, WHAT_TO_KNOW]
    assert [
        len(section.strip().splitlines()) for section in sections[1::2] if section.count("\n") > LINES_OF_A_SECTION
    ] == []


def test_changelog_has_no_relative_figures() -> None:
    """A reader does not know the base of "a quarter less"."""
    assert [line for line in CHANGELOG.splitlines() if _RELATIVE_FIGURE.search(line)] == []


def test_settings_of_the_changelog_exist() -> None:
    page = text(Path("docs/reference/settings.md"))
    sections = dict(re.findall(r"^## `?\[([\w.<>]+)\]`?\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    named = re.findall(r"`\[([\w.<>]+)\](?: (\w+))?", CHANGELOG)
    assert len(named) > 15
    documented = {
        (name, key)
        for name, body in sections.items()
        for key in ["", *re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE)]
    }
    assert sorted(set(named) - documented) == []


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_catalogues_of_texts_are_in_the_distributions(builder: type[WheelBuilder | SdistBuilder]) -> None:
    included = {file.distribution_path for file in builder(str(ROOT)).recurse_included_files()}
    catalogues = {str(path) for path in project_files() if path.parts[:2] == ("edge", "texts")}
    assert "edge/texts/fr.toml" in catalogues
    assert catalogues <= included
