"""The child process of a worker returns JSON for every output of a node."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from edge.features.flows.nodes import progress
from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeError, NodeKind, Output
from edge.features.flows.plugins import load_kinds
from edge.features.flows.worker import stated
from edge.features.flows.worker_child import answer
from edge.foundation.text import Text
from tests.features.flows.site_kinds import write_check

LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.fixture(autouse=True)
def _progress_reported_as_before() -> Iterator[None]:
    before = vars(progress)["_report"]
    yield
    progress.report_to(before)


class NoTextError(Exception):
    """An error whose text fails, too."""

    def __str__(self) -> str:
        """Fail."""
        raise TypeError


def ignored(_percent: int, _message: str) -> None:
    """Ignore progress."""


def returning(value: Any) -> dict[str, Any]:
    """Return the answer to an attempt at a node that returns a value, or raises it."""

    def run(_config: NodeConfig, _attempt: Attempt) -> Output:
        if isinstance(value, BaseException):
            raise value
        return value() if callable(value) else Output(value)

    kinds = {"k": NodeKind("k", "Tests.", NodeConfig, Inputs.NONE, Compute(run), in_worker=True)}
    attempt = {"flow_id": "f", "node_id": "n", "number": 1, "now": 0, "inputs": {}, "memory": None}
    return answer(kinds, {"kind": "k", "config": {}, "attempt": attempt}, ignored)


def reason_of(answered: Mapping[str, Any]) -> str:
    """Return the reason of a failure in English."""
    return str(stated(answered["failed"]))


@pytest.mark.parametrize("value", [None, 1, 2**64, -2.5, "ü\u0000", [True, {"a": []}], {"k": "v" * 1_000_000}])
def test_json_output_is_returned_unchanged(value: Any) -> None:
    assert returning(value) == {"output": value, "withheld": None, "memory": None}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (LOOP, "the output is not JSON"),
        (DEEP, "the output is not JSON"),
        (float("inf"), "the output is not JSON"),
        ({(1, 2): 3}, "the output is not JSON"),
        ("\ud800", "the output is not JSON"),
        ([10**5000], "the output is not JSON"),
        (NodeError("\ud800" * 2000), "\\ud800"),
        (["v" * 100] * 20_000, "the output has more than 1048576 bytes of JSON"),
        (MemoryError(), "the node needs more memory than it may have"),
        (KeyError("x"), "KeyError: 'x'"),
        (NoTextError(), "NoTextError"),
        (lambda: None, "the node returned NoneType"),
        (lambda: Output(1, withheld="switch"), "the node returned Output, or an unknown withheld"),  # type: ignore[arg-type]
        (RecursionError("deep"), "RecursionError: deep"),
    ],
)
def test_invalid_output_is_a_failure_with_a_reason(value: Any, reason: str) -> None:
    assert reason_of(returning(value)).startswith(reason)


def test_reason_of_a_node_is_for_each_language() -> None:
    long = Text.of("{url}: more than {most} bytes", url="http://plc/", most=5)
    found = stated(returning(NodeError(long))["failed"])
    assert isinstance(found, Text)
    assert found.in_language("de") == "http://plc/: mehr als 5 Byte"


def test_invalid_config_is_a_failure(tmp_path: Path) -> None:
    kinds = load_kinds(write_check(tmp_path))
    attempt = {"flow_id": "f", "node_id": "n", "number": 1, "now": 0, "inputs": {}, "memory": None}
    found = answer(kinds, {"kind": "site.check", "config": {"how": 5}, "attempt": attempt}, ignored)
    assert reason_of(found).startswith("ValidationError")
    built_in = answer(kinds, {"kind": "tag.latest", "config": {"tag": "t"}, "attempt": attempt}, ignored)
    assert reason_of(built_in) == "tag.latest does not run in a worker"
