"""Names in expressions are predecessors or `input`; dotted ids take precedence over members of outputs."""

import pytest

from edge.expression.syntax import ExpressionSyntaxError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.names import condition_of, evaluate, syntax_faults, value_of
from tests.features.flows.nodes.attempts import attempt


def value(text: str, **inputs: object) -> object:
    return evaluate(value_of(text, frozenset(inputs)), attempt(inputs))


def test_names_refer_to_members_of_predecessor_outputs() -> None:
    assert value("a.mean + b[1]", a={"mean": 2}, b=[1, 3]) == 5
    assert value("input.x", a={"x": 7}) == 7


def test_longest_dotted_predecessor_id_is_preferred() -> None:
    inputs = {"press": {"mean": 1}, "press.mean": 5}
    assert evaluate(value_of("press.mean", frozenset(inputs)), attempt(inputs)) == 5


def test_unknown_value_is_null() -> None:
    assert value("a + 1", a=None) is None
    assert value("input", a=1, b=2) is None
    assert value("a.missing", a={}) is None


def test_type_error_fails_the_node() -> None:
    with pytest.raises(NodeError):
        value("a + 1", a="text")
    with pytest.raises(NodeError):
        evaluate(condition_of("a", frozenset({"a"})), attempt({"a": 5}))


def test_name_that_is_not_a_predecessor_is_refused() -> None:
    with pytest.raises(ExpressionSyntaxError, match="there is no input 'c'; known are a, input"):
        value_of("a + c", frozenset({"a"}))
    assert list(syntax_faults(value_of, "a", ["a"])) == []
    assert list(syntax_faults(value_of, "a +", ["a"]))
    assert list(syntax_faults(condition_of, "5 + 1", ["a"]))
