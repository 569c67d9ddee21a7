"""The views of prompts as conditions: every field can be encoded, responses are indexes of options."""

from typing import Any

import pytest
from asyncua import ua
from asyncua.ua.ua_binary import variant_to_binary

from edge.features.prompts.feature import FEATURE
from edge.features.prompts.opcua.prompt_view import PromptView, choice_of, response_of, shape_of
from edge.features.prompts.open_prompt import OpenPrompt
from edge.features.prompts.prompt import PromptKind, parse_prompt
from edge.opcua.access import reading_in
from edge.uaserver.condition_members import ConditionFields
from tests.features.imports import imported_with
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER

ACTIONS = {PromptKind.CONFIRM: CONFIRM, PromptKind.CHOOSE: CHOOSE, PromptKind.ENTER: ENTER}


def opened(kind: PromptKind, **more: Any) -> OpenPrompt:
    parameters: Any = ACTIONS[kind]["parameters"]
    prompt, faults = parse_prompt(kind, parameters | more)
    assert prompt, faults
    return OpenPrompt("J1/0/ask/1", kind, prompt, "station-1", "J1", "Ask", "ask", 1_000)


def fields(prompt: OpenPrompt, **more: Any) -> dict[str, ua.Variant]:
    view = PromptView(prompt, ua.NodeId("station-1", 8), 2_000, **more)
    return dict(ConditionFields(shape_of(prompt.kind).members, view))


@pytest.mark.parametrize("kind", PromptKind)
@pytest.mark.parametrize("is_open", [True, False])
def test_every_field_can_be_encoded(kind: PromptKind, is_open: bool) -> None:  # noqa: FBT001 - a parameter
    for name, value in fields(opened(kind), is_open=is_open).items():
        assert variant_to_binary(value), name


@pytest.mark.parametrize(
    ("kind", "result", "response"),
    [
        (PromptKind.CONFIRM, {"confirmed": True}, 0),
        (PromptKind.CHOOSE, {"choice": "ok"}, 0),
        (PromptKind.CHOOSE, {"choice": "defective"}, 1),
        (PromptKind.CHOOSE, {"choice": "of another recipe"}, None),
        (PromptKind.ENTER, {"serial": "S1"}, None),
        (PromptKind.CONFIRM, None, None),
    ],
)
def test_response_is_the_index_of_the_result(kind: PromptKind, result: Any, response: int | None) -> None:
    assert response_of(opened(kind), result) == response


@pytest.mark.parametrize(
    ("kind", "response", "choice"),
    [
        (PromptKind.CONFIRM, 0, ""),
        (PromptKind.CONFIRM, 1, None),
        (PromptKind.CHOOSE, 1, "defective"),
        (PromptKind.CHOOSE, 2, None),
        (PromptKind.CHOOSE, -1, None),
    ],
)
def test_index_without_an_option_has_no_choice(kind: PromptKind, response: int, choice: str | None) -> None:
    assert choice_of(opened(kind), response) == choice


def test_prompt_of_a_dialog_has_the_title_and_the_text() -> None:
    prompt = opened(PromptKind.CONFIRM, title={"en": "Seat it", "de": "Einlegen"}, text={"en": "Left", "de": "Links"})
    assert fields(prompt)["Prompt"].Value.Text == "Seat it\nLeft"
    with reading_in(("de-AT",)):
        found = fields(prompt)
        assert found["Prompt"].Value == ua.LocalizedText("Einlegen\nLinks", "de")
        assert found["ResponseOptionSet"].Value == [ua.LocalizedText("Bestätigen", "de")]


def test_each_state_has_an_event_id_of_its_own() -> None:
    prompt = opened(PromptKind.CONFIRM)
    first = fields(prompt)["EventId"].Value
    assert first == fields(prompt)["EventId"].Value
    assert fields(prompt, is_open=False)["EventId"].Value != first


def test_opcua_server_without_prompts_imports_nothing_that_answers() -> None:
    module, feature = FEATURE.opcua_off.partition(":")[0], "edge.features.prompts."
    assert imported_with(module, "prompts").isdisjoint({f"{feature}answering", f"{feature}opcua.prompt_feed"})
