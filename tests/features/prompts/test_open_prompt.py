"""The public form of a prompt, and its id."""

import pytest

from edge.features.prompts.open_prompt import OpenPrompt, prompt_id, public_prompt
from edge.features.prompts.prompt import Choice, Prompt, PromptField, PromptKind

COMMAND = "J1/7d444840/ask/1"


def opened(prompt: Prompt, kind: PromptKind = PromptKind.CONFIRM) -> OpenPrompt:
    return OpenPrompt(COMMAND, kind, prompt, "station-1", "J1", "Ask", "ask", 1_700_000_000_000)


def test_id_is_short_and_follows_from_the_command() -> None:
    ids = {prompt_id(f"J1/R/ask/{attempt}") for attempt in range(1000)}
    assert len(ids) == 1000
    assert all(len(id_) == 16 and set(id_) <= set("abcdefghijklmnopqrstuvwxyz234567") for id_ in ids)
    assert prompt_id(COMMAND) == opened(Prompt("Ask")).id


@pytest.mark.parametrize(("language", "title"), [("de", "Kabel"), ("fr", "Cable"), ("en", "Cable")])
def test_title_is_in_the_language_of_the_reader(language: str, title: str) -> None:
    shown = public_prompt(opened(Prompt({"en": "Cable", "de": "Kabel"})), [language])
    assert (shown.title, shown.text, shown.kind) == (title, "", "confirm")


def test_names_without_titles_are_words() -> None:
    prompt = Prompt("Ask", choices=(Choice("notSeated"),), fields=(PromptField("serial_number"),))
    shown = public_prompt(opened(prompt))
    assert [choice.title for choice in shown.choices] == ["Not seated"]
    assert [field.title for field in shown.fields] == ["Serial number"]


def test_public_prompt_states_whether_a_login_is_needed() -> None:
    assert not public_prompt(opened(Prompt("Ask"))).needs_login
    assert public_prompt(opened(Prompt("Ask", second_person=True))).needs_login
