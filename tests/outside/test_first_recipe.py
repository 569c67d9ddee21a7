"""The tutorial "Your first recipe" works with its files and commands as written."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.outside.servers import EDGE, Gateway, ended, wait_for

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "first-recipe.md"

pytestmark = pytest.mark.slow


def blocks(language: str) -> list[str]:
    """Return the blocks of a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@dataclass
class Tutorial:
    """The folder of the tutorial and its gateway."""

    folder: Path
    gateway: Gateway

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run commands of the page in its folder."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{EDGE.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def output(self, script: str) -> str:
        """Run commands of the page that succeed; return what they print."""
        done = self.run(script)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def tutorial() -> Iterator[Tutorial]:
    # Not below tmp_path: the Unix socket of the store has to have a short path.
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        folder = Path(directory)
        (settings,) = blocks("toml")
        gateway = Gateway(folder, "edge", settings.replace("embedded:store", f"embedded:{folder}/store"))
        with ended(gateway):
            yield Tutorial(folder, gateway)
            gateway.stop()


def test_tutorial_of_a_recipe_works_as_written(tutorial: Tutorial) -> None:
    (recipe, script), (check, simulate, order, answers, look) = blocks("json"), blocks("sh")
    (tutorial.folder / "axle.json").write_text(recipe)
    (tutorial.folder / "script.json").write_text(script)
    drawn = tutorial.output(check)
    assert "axle.json: no problems" in drawn
    assert "Loosen" in drawn
    simulated = tutorial.output(simulate)
    assert [simulated.count(f"▶ {step}") for step in ("Tighten", "Loosen", "Confirm", "Rework")] == [3, 2, 1, 0]
    assert "J1: completed" in simulated
    (tutorial.folder / "wrong.json").write_text(recipe.replace('"choices"', '"choises"'))
    wrong = tutorial.run("edge check recipe wrong.json")
    assert "unknown parameter 'choises'" in wrong.stdout + wrong.stderr

    tutorial.gateway.start()
    tutorial.output(order)
    for answer in answers.splitlines():
        wait_for(lambda answer=answer: tutorial.run(answer).returncode == 0, answer)  # type: ignore[misc]
    wait_for(lambda: "Ended" in tutorial.output(look), "the job has ended")
    shown = tutorial.output(look)
    assert shown.count("answer to tighten") == 2
    assert "85.2" in shown
