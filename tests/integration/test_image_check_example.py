"""The example of a node kind, a small neural net, judges images in a worker."""

import json
import random
import runpy
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from edge.features.flows.node_task import ResultKind, TaskResult
from edge.features.flows.nodes.kind import Attempt, Compute, NodeError
from edge.features.flows.plugins import load_kinds
from edge.features.flows.worker import WorkerProcess
from tests.features.flows.test_node_task_messages import TASK

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "image_check"
WEIGHTS = str(EXAMPLE / "weights.json")
SHIPPED = json.loads((EXAMPLE / "weights.json").read_text(encoding="utf-8"))

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@pytest.fixture(scope="module")
def training() -> Any:
    """The functions of the script that makes the weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        return runpy.run_path(str(EXAMPLE / "train.py"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A process of a worker with the example in its folder."""
    folder = tmp_path_factory.mktemp("nodes")
    shutil.copy(EXAMPLE / "image_check.py", folder)
    found = WorkerProcess(str(folder), 1024)
    yield found
    await found.kill()


async def judge(process: WorkerProcess, image: object) -> TaskResult:
    async def on_progress(_percent: int, _message: str) -> bool:
        return True

    task = msgspec.structs.replace(
        TASK, kind="site.image_check", config={"weights": WEIGHTS}, inputs={"camera": image}, memory=None
    )
    return await process.run(task, repeatable=True, on_progress=on_progress)


@pytest.mark.parametrize("good", [True, False])
async def test_net_judges_an_image_in_a_worker(process: WorkerProcess, training: Any, *, good: bool) -> None:
    result = await judge(process, training["draw"](random.Random(7), good=good))
    assert result.kind is ResultKind.COMPLETED, result.reason
    assert result.value["good"] is good


async def test_net_judges_a_file_of_a_camera(process: WorkerProcess, training: Any, tmp_path: Path) -> None:
    rows = training["draw"](random.Random(8), good=True)
    pixels = bytes(max(0, min(255, round(value))) for row in rows for value in row)
    (tmp_path / "p5.pgm").write_bytes(b"P5\n# a camera\n16 16\n255\n" + pixels)
    (tmp_path / "p2.pgm").write_bytes(b"P2 16 16 255\n" + b" ".join(b"%d" % pixel for pixel in pixels))
    task_results = [await judge(process, str(tmp_path / name)) for name in ("p5.pgm", "p2.pgm")]
    assert task_results[0].value == task_results[1].value
    assert task_results[0].value["good"]


async def test_script_makes_weights_that_judge_new_images(training: Any) -> None:
    learnt = training["train"]()
    assert training["accuracy"](learnt, 3) >= 0.98
    assert training["accuracy"](SHIPPED, 3) >= 0.98


@pytest.mark.parametrize(
    "image", [5, [], [[1.0] * 8] * 7, [[1.0] * 8] * 7 + [[1.0]], [["x"] * 8] * 8, [[True] * 8] * 8]
)
async def test_invalid_image_is_refused(tmp_path: Path, image: object) -> None:
    shutil.copy(EXAMPLE / "image_check.py", tmp_path)
    kind = load_kinds(str(tmp_path))["site.image_check"]
    assert isinstance(kind.work, Compute)
    with pytest.raises(NodeError, match="expected"):
        kind.work.run(msgspec.convert({"weights": WEIGHTS}, kind.config), Attempt("f", "n", 1, 0, {"a": image}))


@pytest.mark.parametrize(
    "data", [b"", b"P5", b"P6 2 2 255\n1234", b"P5 16 16 255\nabc", b"P5 a b c\n", b"P5 9 0 255\n"]
)
async def test_invalid_pgm_file_is_refused(tmp_path: Path, data: bytes) -> None:
    shutil.copy(EXAMPLE / "image_check.py", tmp_path)
    kind = load_kinds(str(tmp_path))["site.image_check"]
    assert isinstance(kind.work, Compute)
    (tmp_path / "image.pgm").write_bytes(data)
    image = str(tmp_path / "image.pgm")
    with pytest.raises(NodeError, match=r"image\.pgm"):
        kind.work.run(msgspec.convert({"weights": WEIGHTS}, kind.config), Attempt("f", "n", 1, 0, {"a": image}))
