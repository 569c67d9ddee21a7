"""The tutorial "Your first recipe" works with its files and commands as written."""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.outside.servers import EDGE, Gateway, ended, wait_for

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "first-recipe.md"

pytestmark = pytest.mark.slow


def block(name: str) -> str:
    """Return the only block with this name, such as `toml devices`."""
    (found,) = blocks(re.escape(name))
    return found


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


@contextlib.contextmanager
def simulated(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a simulated device, and end it."""
    process = subprocess.Popen([EDGE, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        assert "accepts clients" in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_scanner_and_tool_of_the_tutorial_work_as_written(tutorial: Tutorial) -> None:
    recipe, devices = blocks("json")[0], block("toml devices")
    by_hand = re.search(r'    \{"name": "tighten".*?\}\},\n', recipe, re.DOTALL)
    assert by_hand
    (tutorial.folder / "axle.json").write_text(recipe.replace(by_hand[0], block("json tool")))
    wrench, reader = re.findall("^    edge (sim .*)$", PAGE.read_text(), re.MULTILINE)
    ports = {port: str(free_port()) for port in re.findall(r"127\.0\.0\.1:([0-9]+)", devices)}
    for port, free in ports.items():
        devices, wrench, reader = (text.replace(port, free) for text in (devices, wrench, reader))
    settings = tutorial.gateway.settings
    settings.write_text(f"{settings.read_text()}\n{devices}")
    with simulated(wrench.split()), simulated(reader.split()) as scanner:
        tutorial.gateway.start()
        tutorial.output(block("sh devices"))
        assert scanner.stdin
        scanner.stdin.write("S1235\n")
        scanner.stdin.flush()
        *answers, look = block("sh people").splitlines()
        for answer in answers:
            wait_for(lambda answer=answer: tutorial.run(answer).returncode == 0, answer)  # type: ignore[misc]
        wait_for(
            lambda: '"completed"' in tutorial.output("edge jobs show AXLE-0002 --json --settings edge.toml"), "end"
        )
        shown = tutorial.output(look)
        history = tutorial.output("edge jobs history AXLE-0002 --settings edge.toml")
    assert "S1235" in shown
    assert "answer to scan 1 by scanner" in history
    assert history.count("→ Tighten") == 2, history
