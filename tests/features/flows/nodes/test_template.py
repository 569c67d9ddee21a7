"""A template replaces the expressions in its text by their values."""

from edge.features.flows.nodes.template import KIND
from tests.features.flows.nodes.attempts import configure, run


def test_placeholders_are_replaced_by_values() -> None:
    text = "Mean {mean.value / 2} of {name}, {flag}, {nothing}"
    output = run(KIND, {"text": text}, mean={"value": 7}, name="press", flag=True, nothing=None)
    assert output.value == "Mean 3.5 of press, true, null"


def test_invalid_placeholder_is_a_fault() -> None:
    assert configure(KIND, {"text": "{a} {b +}"}, "a", "b")
    assert configure(KIND, {"text": "{c}"}, "a")
    assert configure(KIND, {"text": "plain"}) == []
