"""Dead letters: work that was given up, with the reason, for a person to look at."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct, field

from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys
from edge.store.stream import Entry, entries

STREAM_LENGTH = 1000
_TELEMETRY = "telemetry/"
"""Begins the id of a letter of telemetry: the streams number their entries independently."""


class LetterKind(StrEnum):
    """The kind of a dead letter: what was given up, a `late` result without a command, or a batch of `telemetry`."""

    START = "start"
    DECISION = "decision"
    DEADLINE = "deadline"
    COMMAND = "command"
    UNREADABLE = "unreadable"
    LATE = "late"
    TELEMETRY = "telemetry"


class Letter(Struct, frozen=True):
    """Work that was given up, at an instant in milliseconds since the epoch.

    `details` holds `phase`, `command_id`, `step` and `type_id` of a command, or the fields of an unreadable entry.
    """

    kind: LetterKind
    scope: str
    job_id: str
    reason: str
    at: int
    details: Mapping[str, str] = field(default_factory=dict)


def add(keys: Keys, letter: Letter, keep_ms: int) -> Commit:
    """Add a letter; the oldest go beyond the limit, and all go when none was added for the retention time."""
    entry = (
        *("kind", letter.kind.value, "scope", letter.scope, "job_id", letter.job_id, "at", str(letter.at)),
        *("reason", letter.reason, "details", msgspec.json.encode(letter.details).decode()),
    )
    return join(
        (
            operation("XADD", keys.sfc_dead_letters(), "MAXLEN", "~", STREAM_LENGTH, "*", *entry),
            operation("PEXPIRE", keys.sfc_dead_letters(), keep_ms),
        )
    )


def delete(keys: Keys, letter_id: str) -> Commit:
    """Delete a letter."""
    if letter_id.startswith(_TELEMETRY):
        return operation("XDEL", keys.telemetry_dlq(), letter_id.removeprefix(_TELEMETRY))
    return operation("XDEL", keys.sfc_dead_letters(), letter_id)


async def load_all(store: Store) -> dict[str, Letter]:
    """Return every letter by its id: those of jobs, then the batches of telemetry; of each the oldest first."""
    of_jobs, batches = await store.read(
        [("XRANGE", store.keys.sfc_dead_letters(), "-", "+"), ("XRANGE", store.keys.telemetry_dlq(), "-", "+")]
    )
    letters = {entry.entry_id: _letter(entry) for entry in entries(of_jobs)}
    return letters | {f"{_TELEMETRY}{entry.entry_id}": _batch_letter(entry) for entry in entries(batches)}


async def last_published(store: Store, scope: str) -> str:
    """Return the last late result of a scope that was published; empty for none."""
    cursor: str | None = await store.execute("HGET", store.keys.publisher_cursors(), _cursor_field(scope))
    return cursor or ""


async def load_after(store: Store, letter_id: str) -> dict[str, Letter]:
    """Return the letters of jobs after one of them, by id, the oldest first; all of them after an empty id."""
    reply = await store.execute("XRANGE", store.keys.sfc_dead_letters(), f"({letter_id}" if letter_id else "-", "+")
    return {entry.entry_id: _letter(entry) for entry in entries(reply)}


def save_published(keys: Keys, scope: str, letter_id: str) -> Commit:
    """Record the last late result of a scope that was published."""
    return operation("HSET", keys.publisher_cursors(), _cursor_field(scope), letter_id)


def _cursor_field(scope: str) -> str:
    return f"{scope}/late"


def _batch_letter(entry: Entry) -> Letter:
    """Return a batch that was set aside; its details are the fields of the batch."""
    found = entry.fields
    fields = msgspec.json.decode(found["fields"], type=dict[str, str])
    return Letter(LetterKind.TELEMETRY, "", "", found["reason"], int(found["at"]), fields)


def _letter(entry: Entry) -> Letter:
    found = entry.fields
    return Letter(
        kind=LetterKind(found["kind"]),
        scope=found["scope"],
        job_id=found["job_id"],
        reason=found["reason"],
        at=int(found["at"]),
        details=msgspec.json.decode(found["details"], type=dict[str, str]),
    )
