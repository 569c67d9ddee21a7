"""An attempt has limits of time and size; an exception in a node is reported as its failure reason."""

from typing import Any

import pytest

from edge.features.flows.attempt import LARGEST_OUTPUT, compute_now, perform
from edge.features.flows.cycle import AttemptCompleted, AttemptFailed
from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output
from edge.features.flows.plan import PlannedNode
from edge.foundation.errors import Unavailable
from tests.features.flows.documents import flow, node, plan_of
from tests.features.flows.gateways import FakeOutside

LOOP: list[Any] = []
LOOP.append(LOOP)


def computing(value: Any) -> PlannedNode:
    """Return a node whose output is a value, or that raises it."""

    def run(_config: NodeConfig, _attempt: Attempt) -> Output:
        if isinstance(value, Exception):
            raise value
        return Output(value)

    return PlannedNode("n", NodeKind("test", "Tests.", NodeConfig, Inputs.ANY, Compute(run)), NodeConfig(), 0, None)


def attempt(**inputs: Any) -> Attempt:
    return Attempt("flow", "n", 1, 0, inputs)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("v" * LARGEST_OUTPUT, "at most 1048576 are allowed"),
        (LOOP, "the output is not JSON"),
        (object(), "the output is not JSON"),
        (ZeroDivisionError("by zero"), "the node met a defect: ZeroDivisionError: by zero"),
    ],
)
async def test_invalid_output_or_exception_fails_the_node(value: Any, reason: str) -> None:
    node = computing(value)
    for outcome in (compute_now(node, attempt()), await perform(node, attempt(), "t", FakeOutside())):
        assert isinstance(outcome, AttemptFailed)
        assert reason in str(outcome.reason)


async def test_computation_over_many_items_runs_in_the_background() -> None:
    node = computing(1)
    assert compute_now(node, attempt(a=[0] * 3000)) is None
    assert await perform(node, attempt(a=[0] * 3000), "t", FakeOutside()) == AttemptCompleted("n", Output(1))


@pytest.mark.parametrize("error", [Unavailable("no connection"), TimeoutError("no answer")])
async def test_error_of_the_port_is_the_reason(error: Exception) -> None:
    plan = plan_of(flow([node("n", "tag.latest", tag="t")]))
    outside = FakeOutside()
    outside.fail = error
    outcome = await perform(plan.nodes["n"], attempt(), "t", outside)
    assert isinstance(outcome, AttemptFailed)
    assert str(error) in str(outcome.reason)
