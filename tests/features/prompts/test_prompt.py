"""The parameters of a prompt: what is allowed, and each fault by name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.prompts.prompt import FieldType, PromptKind, kind_of, parse_prompt, recipe_faults
from edge.model.recipe import parse_recipe
from edge.model.user import Role
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER, prompt
from tests.station.plant import action, linear, pull

TWO = [{"value": "a"}, {"value": "b"}]


@pytest.mark.parametrize(
    ("type_id", "kind"),
    [
        ("com.example.operator.confirm.v1", PromptKind.CONFIRM),
        ("operator.choose.v1", PromptKind.CHOOSE),
        ("x.operator.enter.v1", PromptKind.ENTER),
        ("com.example.operator.enter.v2", None),
        ("com.example.myoperator.enter.v1", None),
        ("operator.confirm.v1.x", None),
        ("", None),
    ],
)
def test_kind_follows_from_the_end_of_the_type(type_id: str, kind: PromptKind | None) -> None:
    assert kind_of(type_id) is kind


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (PromptKind.CONFIRM, {}),
        (PromptKind.CONFIRM, {"title": {"en": "Seat it", "de": "Einlegen"}, "text": "Left side", "picture": "a-1.png"}),
        (PromptKind.CONFIRM, {"role": "engineer", "second_person": True}),
        (PromptKind.CONFIRM, {"sign": "any", "second_person": True}),
        (PromptKind.CHOOSE, {"choices": TWO}),
        (PromptKind.CHOOSE, {"choices": [{"value": str(number)} for number in range(6)]}),
        (PromptKind.ENTER, {"fields": [{"name": "serial", "type": "scan"}]}),
        (PromptKind.ENTER, {"fields": [{"name": "mass", "type": "number", "unit": "kg", "min": 1, "max": 1}]}),
        (PromptKind.ENTER, {"fields": [{"name": f"f{number}"} for number in range(12)]}),
    ],
)
def test_allowed_parameters_have_no_fault(kind: PromptKind, parameters: dict[str, Any]) -> None:
    found, faults = parse_prompt(kind, {"title": "Ask"} | parameters)
    assert faults == ()
    assert found


@pytest.mark.parametrize(
    ("kind", "parameters", "fault"),
    [
        (PromptKind.CONFIRM, {"title": ""}, "title"),
        (PromptKind.CONFIRM, {"title": {}}, "title"),
        (PromptKind.CONFIRM, {"titel": "x"}, "unknown parameter 'titel'"),
        (PromptKind.CONFIRM, {"picture": "../secret.png"}, "picture"),
        (PromptKind.CONFIRM, {"picture": "a.html"}, "picture"),
        (PromptKind.CONFIRM, {"role": "observer"}, "role"),
        (PromptKind.CONFIRM, {"second_person": 1}, "second_person"),
        (PromptKind.CONFIRM, {"sign": "finger"}, "sign: "),
        (PromptKind.CONFIRM, {"choices": TWO}, "choices: they belong to"),
        (PromptKind.CHOOSE, {"choices": TWO[:1]}, "expected 2 to 6, not 1"),
        (PromptKind.CHOOSE, {"choices": [{"value": str(number)} for number in range(7)]}, "expected 2 to 6, not 7"),
        (PromptKind.CHOOSE, {"choices": [*TWO, TWO[0]]}, "'a' is given 2 times"),
        (PromptKind.CHOOSE, {"choices": [{"value": ""}, {"value": "b"}]}, "choices"),
        (PromptKind.CHOOSE, {}, "expected 2 to 6, not 0"),
        (PromptKind.CHOOSE, {"choices": TWO, "fields": [{"name": "a"}]}, "fields: they belong to"),
        (PromptKind.ENTER, {}, "expected 1 to 12, not 0"),
        (PromptKind.ENTER, {"fields": [{"name": "a"}, {"name": "a"}]}, "'a' is given 2 times"),
        (PromptKind.ENTER, {"fields": [{"name": "a b"}]}, "fields"),
        (PromptKind.ENTER, {"fields": [{"name": "a", "type": "date"}]}, "fields"),
        (PromptKind.ENTER, {"fields": [{"name": "a", "unit": "kg"}]}, "belong to the type number"),
        (PromptKind.ENTER, {"fields": [{"name": "a", "type": "number", "min": 2, "max": 1}]}, "min 2 is above max 1"),
        (PromptKind.ENTER, {"fields": [{"name": "a", "typ": "scan"}]}, "fields"),
    ],
)
def test_each_fault_of_parameters_is_named(kind: PromptKind, parameters: dict[str, Any], fault: str) -> None:
    found, faults = parse_prompt(kind, {"title": "Ask"} | parameters)
    assert found is None
    assert any(fault in text for text in faults), faults


def test_missing_title_is_named_with_all_other_faults() -> None:
    _, faults = parse_prompt(PromptKind.CONFIRM, {"text": 5, "colour": "red"})
    assert [fault.partition(":")[0] for fault in faults] == [
        "text",
        "the parameter title is missing",
        "unknown parameter 'colour'",
    ]


@given(st.sampled_from(PromptKind), st.dictionaries(st.text(max_size=8), st.none() | st.text() | st.lists(st.text())))
def test_any_parameters_are_read_or_have_faults(kind: PromptKind, parameters: dict[str, Any]) -> None:
    found, faults = parse_prompt(kind, parameters)
    assert (found is None) == bool(faults)


@pytest.mark.parametrize(
    ("members", "needs_login", "role"),
    [
        ({}, False, Role.OPERATOR),
        ({"role": "operator"}, True, Role.OPERATOR),
        ({"role": "engineer"}, True, Role.ENGINEER),
        ({"second_person": True}, True, Role.OPERATOR),
        ({"sign": "pin"}, True, Role.OPERATOR),
        ({"sign": "badge"}, True, Role.OPERATOR),
        ({"sign": "any"}, True, Role.OPERATOR),
    ],
)
def test_login_is_needed_for_more_than_a_confirmation(members: dict[str, Any], needs_login: bool, role: Role) -> None:  # noqa: FBT001
    found, _ = parse_prompt(PromptKind.CONFIRM, {"title": "Ask"} | members)
    assert found
    assert (found.needs_login, found.lowest_role) == (needs_login, role)


def test_recipe_check_names_action_and_step_of_each_fault() -> None:
    recipe = linear(CONFIRM, prompt("choose", step="Next"), action("tighten", "Last", parameters={"odd": 1}))
    compiled = compile_recipe(recipe, checks=[recipe_faults])
    assert isinstance(compiled, RejectedRecipe)
    assert compiled.faults == ("action 'ask' of step 'Next': choices: expected 2 to 6, not 0",)


def test_prompt_that_waits_for_an_event_is_refused() -> None:
    recipe, _ = parse_recipe(linear(pull("ask", "Ask", "x.operator.confirm.v1")))
    assert recipe
    assert recipe_faults(recipe) == ("action 'ask' of step 'Ask': a prompt is a push_command",)


def test_sound_prompts_are_accepted_with_the_recipe() -> None:
    recipe, faults = parse_recipe(linear(CONFIRM, {**CHOOSE, "step": "B"}, {**ENTER, "step": "C"}))
    assert recipe
    assert (faults, recipe_faults(recipe)) == ((), ())


def test_type_of_a_field_is_text_unless_named() -> None:
    found, _ = parse_prompt(PromptKind.ENTER, {"title": "Ask", "fields": [{"name": "note"}]})
    assert found
    assert found.fields[0].type is FieldType.TEXT
