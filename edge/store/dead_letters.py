"""Dead letters: work that was given up, with the reason, for a person to look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys
from edge.store.stream import Entry, entries

STREAM_LENGTH = 1000


class LetterKind(StrEnum):
    """The kind of a dead letter: what was given up, or a `late` result that no command waits for."""

    START = "start"
    DECISION = "decision"
    DEADLINE = "deadline"
    COMMAND = "command"
    UNREADABLE = "unreadable"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Letter:
    """One thing that was given up, at an instant in milliseconds since the epoch.

    `details` are, of a command, its `phase`, `command_id`, `step` and `type_id`, of an unreadable entry its fields.
    """

    kind: LetterKind
    scope: str
    job_id: str
    reason: str
    at: int
    details: Mapping[str, str] = field(default_factory=dict)


def add(keys: Keys, letter: Letter, keep_ms: int) -> Commit:
    """Set a letter aside among the newest; all are gone when so long none was added."""
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
    return operation("XDEL", keys.sfc_dead_letters(), letter_id)


async def load_all(store: Store) -> dict[str, Letter]:
    """Return every letter by its id, the oldest first."""
    reply = await store.execute("XRANGE", store.keys.sfc_dead_letters(), "-", "+")
    return {entry.entry_id: _letter(entry) for entry in entries(reply)}


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
