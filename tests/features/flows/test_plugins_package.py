"""A node kind in a wheel that pip has installed is found by its entry point, as the page describes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.features.flows.documents import flow, node, nodes_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "write-a-node-kind.md").read_text(encoding="utf-8")
LAUNCHER = """
import sys
sys.path[:0] = {paths}
from edge.cli import main
main()
"""
"""As that of the Debian package: an isolated Python, and the product on a path of its own."""


def run(*command: str | Path) -> str:
    found = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def block(language: str) -> str:
    """Return the first block of code of the page in a language."""
    match = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert match
    return match[1]


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | Path, ...]:
    """The command `edge` of an environment into which the wheel of the page is installed."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "site_checks").mkdir()
    (folder / "site_checks" / "__init__.py").write_text("")
    (folder / "site_checks" / "part_check.py").write_text(block("python"))
    (folder / "pyproject.toml").write_text(block("toml"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, folder)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-index", "--no-deps", folder / "site_checks-1.0-py3-none-any.whl")
    launcher = folder / "edge.py"
    product = [str(ROOT), *(text for text in sys.path if text.endswith("site-packages"))]
    launcher.write_text(LAUNCHER.format(paths=product))
    return python, "-I", launcher


def test_installed_kind_is_listed_and_runs(edge: tuple[str | Path, ...], tmp_path: Path) -> None:
    kinds = json.loads(run(*edge, "flows", "kinds", "--json"))
    (found,) = [kind for kind in kinds if kind["kind"] == "site.part_check"]
    assert (found["in_worker"], found["config"]["$defs"]["PartCheckConfig"]["required"]) == (True, ["weights"])
    weights, file = tmp_path / "weights.json", tmp_path / "flow.json"
    weights.write_text("[0.5, 0.5]")
    document = flow(
        [node("pixels", "constant", value=[1.0, 0.5]), node("check", "site.part_check", weights=str(weights))],
        "pixels>check",
    )
    file.write_text(json.dumps(document))
    cycle = json.loads(run(*edge, "flows", "test", file, "--json"))
    assert nodes_of(cycle)["check"]["output"] == {"score": 0.75, "good": True}


def test_installed_kind_passes_the_check_in_a_child(edge: tuple[str | Path, ...]) -> None:
    """Gateways and workers import kinds in a child process first."""
    python, isolated, launcher = edge
    script = Path(launcher).read_text().partition("from edge.cli")[0] + (
        "import asyncio\n"
        "from edge.features.flows.plugins import load_checked_kinds\n"
        "found = asyncio.run(load_checked_kinds(''))\n"
        "print('site.part_check' in found.kinds, dict(found.faults))\n"
    )
    assert run(python, isolated, "-c", script) == "True {}\n"
