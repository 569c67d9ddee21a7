"""A document is planned only once."""

import json

from edge.features.flows.plan import Plan, Rejected
from edge.features.flows.plans import Plans
from tests.features.flows.documents import flow, node


def test_document_is_planned_once() -> None:
    plans = Plans()
    text = json.dumps(flow([node("a", "constant", value=1)]))
    found = plans.of(text)
    assert isinstance(found, Plan)
    assert plans.of(text) is found


def test_faults_of_a_document_are_returned() -> None:
    assert isinstance(Plans().of(json.dumps(flow([node("a", "nothing")]))), Rejected)


def test_unused_plans_are_dropped() -> None:
    plans = Plans()
    first = plans.of(json.dumps(flow([node("a", "constant", value=-1)])))
    for value in range(1000):
        plans.of(json.dumps(flow([node("a", "constant", value=value)])))
    assert plans.of(json.dumps(flow([node("a", "constant", value=-1)]))) is not first
