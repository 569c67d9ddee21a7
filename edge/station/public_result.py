"""The public form of the results of a job: of each attempt, also of earlier and late ones."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.text import ENGLISH, Text, join_texts, stated_in
from edge.model.instant import Instant, rfc3339
from edge.model.json_value import LONGEST_TEXT, plain_value, short_value
from edge.model.localized_text import choose_text, words_of
from edge.model.offered_choices import CHOICE, chosen_value, field_titles, offered_choices
from edge.model.result_part import MEMBER as PARTS
from edge.model.result_part import ResultPart, parts_of
from edge.model.result_violations import violation_texts
from edge.ports.result_trace import (
    FILE_MEMBER,
    MEMBER,
    MOST_LEVELS,
    FileReference,
    TraceReference,
    media_type_of,
    stored_in,
)
from edge.sfc.run import ActionState, Association, PastAttempt, Run, Sending
from edge.sfc.signal import kind_text
from edge.sfc.titles import action_of, action_title, step_title
from edge.sfc.verdict import SKIPPED
from edge.station.stored_job import StoredJob

_MOST_VALUES: Final = 40
_MOST_CAUSES: Final = 20
_FAILED: Final = frozenset({ActionState.FAILED, ActionState.TIMED_OUT, ActionState.UNKNOWN})
_MOST_TRACES: Final = 40
_MOST_PARTS: Final = 100


class ResultValue(Struct, frozen=True, kw_only=True):
    """A value of a result; `name` is its path in the result, `unit` is empty without one."""

    name: str
    value: Any
    unit: str = ""


class PublicTrace(Struct, frozen=True, kw_only=True):
    """A stored trace: the hash names it, `channels` are the names of its curves."""

    sha256: str
    size: int
    points: int
    channels: tuple[str, ...]


class PublicFile(Struct, frozen=True, kw_only=True):
    """A stored file that equipment offered with a result, such as an image: the hash names it."""

    sha256: str
    size: int
    media_type: str


class PublicResult(Struct, frozen=True, kw_only=True):
    """One attempt at an action that has a result, failed, or was not surely sent; `late` came after its end.

    `sending` is `sent`, `never sent` or `may have been sent`; `result` is as the equipment reported it. `values` are
    its first values, `parts` the joinings of a batch, or the spindles of a tool; `values` are then those of the whole.
    `by` is the person who answered a prompt, skipped the action, or decided about an unknown outcome; `answer` is the
    choice of that person in words, which `values` leave out. `causes` are the limits that the result violates,
    `decided` is what a person decided about a failed attempt. Titles are those of the recipe.
    """

    action: str
    step: str
    attempt: int
    state: str
    late: bool
    sending: str
    sent_at: Instant | None
    ended_at: Instant | None
    error: str
    result: Any
    values: tuple[ResultValue, ...]
    parts: tuple[ResultPart, ...]
    traces: tuple[PublicTrace, ...]
    files: tuple[PublicFile, ...]
    by: str = ""
    title: str = ""
    step_title: str = ""
    answer: str = ""
    causes: tuple[str, ...] = ()
    decided: str = ""


def public_results(
    stored: StoredJob, most: int | None = None, largest: int | None = None, language: str = ENGLISH
) -> tuple[PublicResult, ...]:
    """Return the results of a job in the order of their ends, the newest `most` ones, with errors in a language.

    A result of more than `largest` bytes of JSON is stated by its size: `{"bytes": …}`.
    """
    attempts = (attempt for attempt in attempts_of(stored) if _counts(attempt))
    ordered = sorted(attempts, key=lambda attempt: attempt.ended_at or 0)
    return tuple(_public(stored, attempt, largest, language) for attempt in (ordered[-most:] if most else ordered))


def attempts_of(stored: StoredJob) -> Iterator[Association | PastAttempt]:
    """Yield the attempts of each action: earlier ones, then the latest."""
    if stored.run is not None:
        yield from stored.run.past.values()
        yield from stored.run.associations.values()


def _counts(attempt: Association | PastAttempt) -> bool:
    is_failed = attempt.state in _FAILED and attempt.ended_at is not None
    return attempt.result is not None or is_failed or attempt.sending is not Sending.SENT


def _public(
    stored_job: StoredJob, attempt: Association | PastAttempt, largest: int | None, language: str
) -> PublicResult:
    result = attempt.result
    net, languages = stored_job.net, (language,)
    action = action_of(net, attempt.action, attempt.step) if net else None
    parameters = action.parameters or {} if action else {}
    choice = offered_choices(parameters).get(chosen_value(result))
    names = {name: choose_text(title, languages) for name, title in field_titles(parameters).items()}
    stored, parts = stored_in(result)[:_MOST_TRACES], parts_of(result, _MOST_PARTS)
    left_out = {PARTS if parts else "", CHOICE if choice else ""}
    whole = (
        {names.get(name, name): value for name, value in result.items() if name not in left_out}
        if isinstance(result, Mapping)
        else result
    )
    return PublicResult(
        action=attempt.action,
        step=attempt.step,
        attempt=attempt.attempt,
        state=attempt.state.value,
        late=isinstance(attempt, PastAttempt) and attempt.late,
        sending=attempt.sending.value,
        sent_at=rfc3339(attempt.sent_at),
        ended_at=rfc3339(attempt.ended_at),
        error=stated_in(attempt.error or "", language),
        result=_bounded(result, largest),
        values=tuple(value for value, _ in zip(_values("", whole, MOST_LEVELS), range(_MOST_VALUES), strict=False)),
        parts=parts,
        traces=tuple(
            PublicTrace(
                sha256=reference.sha256, size=reference.size, points=reference.points, channels=reference.channels
            )
            for reference in stored
            if isinstance(reference, TraceReference)
        ),
        files=tuple(
            PublicFile(sha256=reference.sha256, size=reference.size, media_type=media_type_of(reference.file))
            for reference in stored
            if isinstance(reference, FileReference)
        ),
        by=attempt.resolved_by.removeprefix(SKIPPED),
        title=action_title(net, attempt.action, attempt.step, languages) if net else words_of(attempt.action),
        step_title=step_title(net, attempt.step, languages) if net else words_of(attempt.step),
        answer=choose_text(choice, languages) if choice else "",
        causes=tuple(text.in_language(language) for text in islice(violation_texts(result, MOST_LEVELS), _MOST_CAUSES)),
        decided=stated_in(_decision(stored_job.run, attempt), language),
    )


def _decision(run: Run | None, attempt: Association | PastAttempt) -> str | Text:
    """Return what a person decided about an attempt that failed, with the reason; empty without a decision."""
    if run is None or attempt.state not in _FAILED or attempt.ended_at is None:
        return ""
    notes = (
        note
        for note in sorted(run.interventions.values(), key=lambda note: note.at)
        if note.at >= attempt.ended_at and _is_about(note.subject, attempt)
    )
    for note in notes:
        decision = Text.of(
            "{decision} by {by}: {reason}", decision=kind_text(note.kind), by=note.by, reason=note.reason
        )
        return join_texts(", ", (decision, note.second)) if note.second else decision
    return ""


def _is_about(subject: str | Text, attempt: Association | PastAttempt) -> bool:
    return isinstance(subject, Text) and subject.values == {"action": attempt.action, "step": attempt.step}


def measured_values(result: Any, most: int = _MOST_VALUES) -> Iterator[ResultValue]:
    """Yield the numbers of a result that have a unit, the first `most` ones, those of its parts too."""
    values = (value for value in _values("", result, MOST_LEVELS) if value.unit and _is_number(value.value))
    for value in islice(values, most):
        yield value if value.name else replace(value, name="value")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounded(result: Any, largest: int | None) -> Any:
    if largest is None or result is None:
        return result
    size = len(msgspec.json.encode(result))
    return {"bytes": size} if size > largest else result


def _values(name: str, data: Any, levels: int) -> Iterator[ResultValue]:
    """Yield the values of a result by their path; a value with its unit is one, a stored file is none."""
    data = plain_value(data)
    match data:
        case Mapping() if data.keys() == {"value", "unit"} and not isinstance(data["value"], Mapping | list):
            yield ResultValue(name=name, value=short_value(data["value"]), unit=str(data["unit"])[:LONGEST_TEXT])
        case Mapping() if levels:
            for key, inner in data.items():
                is_stored = key in {MEMBER, FILE_MEMBER} and bool(stored_in({key: inner}))
                if not is_stored:
                    yield from _values(f"{name}.{key}" if name else str(key), inner, levels - 1)
        case None:
            return
        case _:
            yield ResultValue(name=name, value=short_value(data))
