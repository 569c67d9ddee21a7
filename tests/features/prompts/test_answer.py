"""The answer of a person: the result that it becomes, and each fault by name."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.prompts.answer import GivenAnswer, result_of
from edge.features.prompts.prompt import Prompt, PromptKind, parse_prompt
from edge.foundation.errors import Refused
from tests.features.prompts.recipes import CHOOSE, ENTER


def _prompt(kind: PromptKind, action: dict[str, object]) -> Prompt:
    parameters: Any = action["parameters"]
    found, faults = parse_prompt(kind, parameters)
    assert found, faults
    return found


CHOICE, FORM = _prompt(PromptKind.CHOOSE, CHOOSE), _prompt(PromptKind.ENTER, ENTER)
CONFIRMATION = Prompt("Ask")


def enter(**values: Any) -> dict[str, Any]:
    return result_of(PromptKind.ENTER, FORM, GivenAnswer(values=values))


def test_confirmation_and_choice_become_results() -> None:
    assert result_of(PromptKind.CONFIRM, CONFIRMATION, GivenAnswer()) == {"confirmed": True}
    assert result_of(PromptKind.CHOOSE, CHOICE, GivenAnswer(choice="ok")) == {"choice": "ok"}


def test_number_with_a_unit_keeps_it() -> None:
    assert enter(mass=5.5, serial="S1") == {"mass": {"value": 5.5, "unit": "kg"}, "serial": "S1"}


@pytest.mark.parametrize(
    ("typed", "number"), [("5", 5), (" 5.5 ", 5.5), ("5,5", 5.5), ("+2", 2), ("1e0", 1.0), (1, 1), (9.0, 9.0)]
)
def test_typed_number_is_read(typed: object, number: float) -> None:
    value = enter(mass=typed, serial="S1")["mass"]["value"]
    assert (value, type(value)) == (number, type(number))


@pytest.mark.parametrize("typed", ["", "x", "1,000.5", "1_0", "٣", "nan", "inf", True, None, [], math.inf, "9" * 50])
def test_other_values_are_not_a_number(typed: object) -> None:
    with pytest.raises(Refused, match="mass is"):
        enter(mass=typed, serial="S1")


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"mass": 0.9, "serial": "S"}, "mass is at least 1 kg"),
        ({"mass": 9.1, "serial": "S"}, "mass is at most 9 kg"),
        ({"mass": 5}, "serial is missing"),
        ({"mass": 5, "serial": 7}, "serial is a text of at most 1000 characters"),
        ({"mass": 5, "serial": "x" * 1001}, "serial is a text of at most 1000 characters"),
        ({"mass": 5, "serial": "S", "note": "a\x07"}, "note has characters that cannot be printed"),
        ({"mass": 5, "serial": "S", "size": 1}, "the prompt has no field 'size'"),
        ({}, "mass is missing; serial is missing"),
    ],
)
def test_each_fault_of_values_is_named(values: dict[str, Any], fault: str) -> None:
    with pytest.raises(Refused, match=fault) as refused:
        enter(**values)
    assert refused.value.kind == "invalid_answer"


def test_scanned_code_may_hold_the_separator_of_gs1() -> None:
    assert enter(mass=5, serial="01\x1d21")["serial"] == "01\x1d21"


@pytest.mark.parametrize(
    ("kind", "prompt", "given_answer", "fault"),
    [
        (PromptKind.CHOOSE, CHOICE, GivenAnswer(), "one of: ok, defective"),
        (PromptKind.CHOOSE, CHOICE, GivenAnswer(choice="no"), "one of: ok, defective"),
        (PromptKind.CHOOSE, CHOICE, GivenAnswer(choice="ok", values={"a": 1}), "has no fields"),
        (PromptKind.CONFIRM, CONFIRMATION, GivenAnswer(choice="ok"), "has no choices"),
        (PromptKind.CONFIRM, CONFIRMATION, GivenAnswer(values={"a": 1}), "has no fields"),
        (PromptKind.ENTER, FORM, GivenAnswer(choice="ok", values={"mass": 2, "serial": "S"}), "has no choices"),
    ],
)
def test_answer_of_another_kind_is_refused(
    kind: PromptKind, prompt: Prompt, given_answer: GivenAnswer, fault: str
) -> None:
    with pytest.raises(Refused, match=fault):
        result_of(kind, prompt, given_answer)


_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from(["mass", "serial", "note", "other"]), _values))
def test_any_values_become_json_within_the_limits_or_are_refused(values: dict[str, Any]) -> None:
    try:
        result = enter(**values)
    except Refused:
        return
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert 1 <= result["mass"]["value"] <= 9
    assert {"mass", "serial"} <= result.keys() <= {"mass", "serial", "note"}
