"""The public form of a dead letter, what it is about, and what a retry does: for `--json`, the HTTP API and people."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text, stated_in
from edge.model.instant import Instant, rfc3339
from edge.sfc.signal import Phase
from edge.store.client import Store
from edge.store.commit import join
from edge.store.dead_letters import Letter, LetterKind, delete, load_all


class PublicLetter(Struct, frozen=True, kw_only=True):
    """Work that was given up; `details` are the fields of its command, of an unreadable entry or of a batch."""

    id: str
    kind: LetterKind
    scope: str
    job_order_id: str | None
    at: Instant
    reason: str
    details: Mapping[str, str]


def public_letter(letter_id: str, letter: Letter, language: str = ENGLISH) -> PublicLetter:
    """Return the public form of a letter, its reason in a language."""
    return PublicLetter(
        id=letter_id,
        kind=letter.kind,
        scope=letter.scope,
        job_order_id=letter.job_id or None,
        at=rfc3339(letter.at),
        reason=stated_in(letter.reason, language),
        details=letter.details,
    )


_PHASES: Final[Mapping[str, Text]] = {
    Phase.START: Text.of("start"),
    Phase.STOP: Text.of("stop"),
    Phase.RESET: Text.of("reset"),
    Phase.PAUSE: Text.of("pause"),
    Phase.RESUME: Text.of("resume"),
}


def subject_of(letter: Letter) -> Text:
    """Return what a letter is about."""
    match letter.kind:
        case LetterKind.START:
            return Text.of("start of a job")
        case LetterKind.DECISION:
            return Text.of("decision on a job")
        case LetterKind.DEADLINE:
            return Text.of("deadline of a job")
        case LetterKind.COMMAND:
            phase = letter.details["phase"]
            return Text.of("command: {phase}", phase=_PHASES.get(phase, phase))
        case LetterKind.UNREADABLE:
            return Text.of("unreadable entry")
        case LetterKind.LATE:
            return Text.of("late result")
        case LetterKind.TELEMETRY:
            return Text.of("batch of samples")


def retry_effect(letter: Letter) -> Text:
    """Return what a retry of a letter does."""
    if letter.is_redacted and letter.kind in {LetterKind.UNREADABLE, LetterKind.TELEMETRY}:
        return Text.of("nothing: secrets in it are hidden by ***")
    match letter.kind:
        case LetterKind.UNREADABLE:
            return Text.of("the entry returns to the work stream")
        case LetterKind.TELEMETRY:
            return Text.of("the batch is evaluated again, with the instants at which its samples arrived")
        case LetterKind.LATE:
            return Text.of("nothing: a late result is kept for a person")
        case LetterKind.COMMAND if letter.details.get("phase") == Phase.STOP:
            return Text.of("the stop is sent again")
        case _:
            return Text.of("the job runs again from its beginning")


def can_retry(letter: Letter) -> bool:
    """Return whether a retry of a letter has an effect."""
    is_hidden = letter.is_redacted and letter.kind in {LetterKind.UNREADABLE, LetterKind.TELEMETRY}
    return letter.kind is not LetterKind.LATE and not is_hidden


async def find_letter(store: Store, letter_id: str) -> Letter:
    """Return the letter with an id. Raises Refused(`unknown_letter`), Unavailable."""
    letter = (await load_all(store)).get(letter_id)
    if letter is None:
        raise Refused(
            "unknown_letter",
            Text.of("there is no dead letter {letter_id!r}", letter_id=letter_id),
            "List the dead letters: edge dead-letters list",
        )
    return letter


async def drop_letters(store: Store, letter_ids: Sequence[str]) -> None:
    """Drop letters, or none when one is not there. Raises Refused(`unknown_letter`), Unavailable."""
    letters = await load_all(store)
    for letter_id in letter_ids:
        if letter_id not in letters:
            await find_letter(store, letter_id)
    await store.commit(join(delete(store.keys, letter_id) for letter_id in letter_ids))
