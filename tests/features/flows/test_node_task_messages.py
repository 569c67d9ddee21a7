"""Tasks and results are decoded unchanged, and each result is mapped to an outcome."""

import pytest

from edge.features.flows.cycle import AttemptCompleted, AttemptFailed, AttemptInterrupted, Outcome
from edge.features.flows.node_task import (
    QueuedTask,
    ResultKind,
    decode_result,
    decode_task,
    encode_result,
    encode_task,
    outcome_of,
    result_of,
)
from edge.features.flows.nodes.kind import Output
from edge.foundation.text import Text

TASK = QueuedTask(
    flow_id="f",
    cycle=3,
    node_id="n",
    kind="site.check",
    attempt=2,
    started_at=4,
    now=5,
    config={"a": 1},
    inputs={"x": [1.5, None]},
)


def test_worker_task_is_read_back_unchanged() -> None:
    assert decode_task(encode_task(TASK)) == TASK


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (ResultKind.COMPLETED, AttemptCompleted("n", Output(7, memory=1))),
        (ResultKind.FAILED, AttemptFailed("n", "no")),
        (ResultKind.INTERRUPTED, AttemptInterrupted("n")),
    ],
)
def test_each_result_is_mapped_to_an_outcome(kind: ResultKind, outcome: Outcome) -> None:
    result = result_of(TASK, kind, value=7, memory=1, reason="no")
    assert decode_result(encode_result(result)) == result
    assert outcome_of(result) == outcome


def test_reason_of_a_worker_reaches_the_cycle_in_each_language() -> None:
    reason = Text.of("no progress for {seconds:g} s", seconds=300.0)
    result = decode_result(encode_result(result_of(TASK, ResultKind.FAILED, reason=reason)))
    assert result.reason == "no progress for 300 s"
    assert outcome_of(result) == AttemptFailed("n", reason)
