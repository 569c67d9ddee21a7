"""What people answered to the prompts of a job, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from edge.model.json_value import LONGEST_TEXT
from edge.model.localized_text import AuthorText, choose_text, words_of
from edge.model.offered_choices import asks_a_person, chosen_value, field_titles, offered_choices, prompt_title
from edge.sfc.run import Association, PastAttempt
from edge.sfc.titles import action_of
from edge.sfc.verdict import SKIPPED
from edge.station.public_result import attempts_of
from edge.station.stored_job import StoredJob


class PromptAnswer(Struct, frozen=True, array_like=True):
    """What a person answered to a prompt; texts are as the recipe has them, by language. A confirmation has no answer.

    Entered values are one text: `Weight 5.5 kg, Serial S1`.
    """

    prompt: AuthorText
    answer: AuthorText | None
    by: str


def prompt_answers(stored: StoredJob) -> tuple[PromptAnswer, ...]:
    """Return what people answered, in the order of the answers."""
    answered = [attempt for attempt in attempts_of(stored) if attempt.resolved_by and attempt.result is not None]
    answered.sort(key=lambda attempt: attempt.ended_at or 0)
    return tuple(answer for attempt in answered for answer in _answers(stored, attempt))


def _answers(stored: StoredJob, attempt: Association | PastAttempt) -> Iterator[PromptAnswer]:
    action = action_of(stored.net, attempt.action, attempt.step) if stored.net else None
    if action is None or attempt.resolved_by.startswith(SKIPPED) or not asks_a_person(action.parameters):
        return
    prompt = prompt_title(action.parameters) or action.title or words_of(attempt.action)
    chosen = offered_choices(action.parameters).get(chosen_value(attempt.result))
    yield PromptAnswer(prompt, chosen or _entered(action.parameters, attempt.result) or None, attempt.resolved_by)


def _entered(parameters: Mapping[str, Any], result: Any) -> str:
    titles = field_titles(parameters)
    values = result.items() if isinstance(result, Mapping) else ()
    texts = (f"{choose_text(titles[name], ())} {_shown(value)}" for name, value in values if name in titles)
    return ", ".join(texts)[:LONGEST_TEXT]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "value" in value:
        return f"{value['value']} {value.get('unit', '')}".rstrip()
    return str(value)
