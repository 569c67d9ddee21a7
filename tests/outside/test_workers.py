"""Worker processes run site node kinds; a killed, hanging or faulty worker affects no other flow."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside.flow_plant import FlowPlant, chain, node, open_flow_plant
from tests.outside.servers import wait_for

pytestmark = pytest.mark.slow

CHECK = """
import time
from pathlib import Path
from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output
from edge.features.flows.nodes.progress import report_progress

class CheckConfig(NodeConfig, frozen=True):
    file: str
    seconds: float = 0.0

def run(config: CheckConfig, attempt: Attempt) -> Output:
    with Path(config.file).open("a") as file:
        file.write("begun\\n")
    for step in range(round(config.seconds * 20)):
        time.sleep(0.05)
        report_progress(step)
    return Output(sum(attempt.input))

KIND = NodeKind("site.NAME", "Checks.", CheckConfig, Inputs.ONE, Compute(run), repeatable=REPEATABLE)
"""
HOSTILE = """
import os, time
from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output

class HostileConfig(NodeConfig, frozen=True):
    how: str

def run(config: HostileConfig, attempt: Attempt) -> Output:
    loop = []
    loop.append(loop)
    print("this is not an answer")
    match config.how:
        case "hangs":
            while True:
                pass
        case "dies":
            os._exit(3)
        case "huge":
            return Output("v" * 100_000_000)
        case "cyclic":
            return Output(loop)
        case "nan":
            return Output([float("nan")])
        case "object":
            return Output(object())
        case "raises":
            raise ZeroDivisionError("by zero")

KIND = NodeKind("site.hostile", "Returns rubbish.", HostileConfig, Inputs.NONE, Compute(run))
"""
VALUES = node("values", "constant", value=[2, 4, 6])


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlowPlant]:
    """A gateway with node kinds of its site."""
    with open_flow_plant(tmp_path_factory.mktemp("workers")) as flow_plant:
        for name, repeatable in (("check", "True"), ("press", "False")):
            text = CHECK.replace("NAME", name).replace("REPEATABLE", repeatable)
            (flow_plant.nodes / f"{name}.py").write_text(text)
        (flow_plant.nodes / "hostile.py").write_text(HOSTILE)
        # Neither the gateway nor a worker may end with it.
        (flow_plant.nodes / "crashes.py").write_text("import os\nos.abort()\n")
        flow_plant.start("edge")
        yield flow_plant


@pytest.fixture(scope="module")
def worker(plant: FlowPlant) -> None:
    """A worker for all tests that kill none."""
    plant.start_worker("shared")


def begun(file: Path) -> int:
    """Return how often a node has begun."""
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.parametrize(("kind", "status", "attempts"), [("check", "completed", 2), ("press", "failed", 1)])
def test_second_worker_takes_over_the_task_of_a_killed_worker(
    plant: FlowPlant, tmp_path: Path, kind: str, status: str, attempts: int
) -> None:
    """A node that must not run twice is not: its outcome is unknown."""
    workers = {name: plant.start_worker(name) for name in (f"first-{kind}", f"second-{kind}")}
    file, flow = tmp_path / "begun", f"over-{kind}"
    plant.put(chain(flow, VALUES, node("run", f"site.{kind}", file=str(file), seconds=2), interval_seconds=0))
    wait_for(lambda: begun(file), "a worker has begun")
    mark = json.loads(plant.store.cli("get", f"microdcs-edge:node_tasks:{flow}_0_run:worker"))
    workers.pop(mark["worker_id"]).kill()
    task = plant.wait_for(flow, 0, "run", status)
    (second,) = workers.values()
    second.stop()
    assert begun(file) == attempts
    assert (task.get("output"), task.get("reason")) == ((12, None) if kind == "check" else (None, "interrupted"))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("hangs", "timeout"),
        ("dies", "the process of the node ended (status 3)"),
        ("huge", "the output has more than 1048576 bytes of JSON"),
        ("cyclic", "the output is not JSON: Circular reference detected"),
        ("nan", "the output is not JSON: Out of range float values are not JSON compliant"),
        ("object", "the output is not JSON: Object of type object is not JSON serializable"),
        ("raises", "ZeroDivisionError: by zero"),
    ],
)
def test_faulty_node_does_not_affect_other_nodes(plant: FlowPlant, how: str, reason: str) -> None:
    hostile: dict[str, Any] = {**node("run", "site.hostile", how=how), "timeout_seconds": 1.0 if how == "hangs" else 50}
    plant.put(chain(f"hostile-{how}", hostile, interval_seconds=0))
    assert plant.wait_for(f"hostile-{how}", 0, "run", "failed")["reason"].startswith(reason)


@pytest.mark.usefixtures("worker")
def test_terminated_node_ends_at_its_next_progress(plant: FlowPlant, tmp_path: Path) -> None:
    file = tmp_path / "begun"
    plant.put(chain("ended", VALUES, node("run", "site.check", file=str(file), seconds=60), interval_seconds=0))
    wait_for(lambda: begun(file), "the worker has begun")
    plant.edge("terminate", "ended", "--node", "run", "--reason", "too long")
    assert plant.wait_for("ended", 0, "run", "terminated")["reason"] == "too long"
    # The worker is free for the next task.
    plant.put(chain("next", VALUES, node("run", "site.check", file=str(file)), interval_seconds=0))
    assert plant.wait_for("next", 0, "run", "completed")["output"] == 12
