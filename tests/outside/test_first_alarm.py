"""The tutorial "From a sensor to an alarm" works with its files and commands as written."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.outside.servers import EDGE, Broker, Gateway, ended, wait_for

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "first-alarm.md"


def blocks(language: str) -> list[str]:
    """Return the blocks of a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@dataclass
class Tutorial:
    """The folder of the tutorial with its broker and its gateway."""

    folder: Path
    broker: Broker
    gateway: Gateway

    def run(self, script: str, *, may_fail: bool = False) -> str:
        """Run commands of the page; return what they print."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace("-p 1883", f"-p {self.broker.port}")],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{EDGE.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert may_fail or done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def tutorial() -> Iterator[Tutorial]:
    # Not below tmp_path: the Unix socket of the store has to have a short path.
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        folder, broker = Path(directory) / "g", Broker(Path(directory) / "b")
        with ended(broker):
            broker.start()
            (settings,) = blocks("toml")
            # The commands of the page are called in its folder, the gateway of a test elsewhere.
            for name in ("rules.json", "history"):
                settings = settings.replace(f'"{name}"', f'"{folder / name}"')
            settings = settings.replace("embedded:store", f"embedded:{folder}/store")
            gateway = Gateway(folder, "edge", settings.replace(":1883", f":{broker.port}"))
            with ended(gateway):
                yield Tutorial(folder, broker, gateway)
                gateway.stop()


@pytest.mark.long
def test_tutorial_of_an_alarm_works_as_written(tutorial: Tutorial) -> None:
    (rules, samples), (try_out, heat, acknowledge, export) = blocks("json"), blocks("sh")
    (tutorial.folder / "rules.json").write_text(rules)
    (tutorial.folder / "samples.jsonl").write_text(samples)
    tried = tutorial.run(try_out)
    assert re.search(r"1\.000  raised +hot .* severity 800\n +2\.000  cleared", tried), tried
    tutorial.gateway.start()

    *heating, alarm_list, show = heat.splitlines()
    tutorial.run("\n".join(heating))
    wait_for(lambda: "800" in tutorial.run(alarm_list), "the alarm is listed")
    assert "unacknowledged" in tutorial.run(alarm_list)
    wait_for(
        lambda: "96" in tutorial.run(show, may_fail=True), "the tag is saved, as the page says within five seconds"
    )
    *answering, history = acknowledge.splitlines()
    tutorial.run("\n".join(answering))
    wait_for(lambda: "cleared" in tutorial.run(history).splitlines()[-1], "the alarm is over")
    assert "no alarms" in tutorial.run(alarm_list)

    wait_for(lambda: tutorial.run(export).count("oven.temperature,") == 3, "the samples are in the history")
    replayed = tutorial.run(export)
    assert "raised" in replayed
    assert "cleared" in replayed
