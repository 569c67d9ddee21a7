"""Work that failed for good, results that came late, refused messages: each with the reason, for a person to read."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct, field

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.secret_text import hide_in_data, hide_in_payload, hide_secrets
from edge.store.client import Store
from edge.store.commit import Commit, fields, join, operation
from edge.store.generation import GENERATION, generation_fields
from edge.store.keys import Keys
from edge.store.reads import Entry, entries

STREAM_LENGTH = 1000
_TELEMETRY = "telemetry/"
"""Begins the id of a letter of telemetry: the streams number their entries independently."""
_REDACTED = "redacted"
_TEXT = "text"
_LATE = "late/"
"""Begins the id of a late result."""


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
    `is_redacted`: secrets in `details` are hidden, so that they are not what they were.
    """

    kind: LetterKind
    scope: str
    job_id: str
    reason: str | Text
    at: int
    details: Mapping[str, str] = field(default_factory=dict)
    is_redacted: bool = False
    generation: str = ""
    """The generation of the store behind Sentinel in which it was written."""


def add(keys: Keys, letter: Letter, keep_ms: int) -> Commit:
    """Add a letter without secrets; the oldest go beyond the limit, and all go when none was added for `keep_ms`.

    Late results are apart: equipment may send any number of them, and they must not displace the others.
    """
    key = keys.late_results() if letter.kind is LetterKind.LATE else keys.sfc_dead_letters()
    entry = (
        *("kind", letter.kind.value, "scope", letter.scope, "job_id", letter.job_id, "at", str(letter.at)),
        *(*reason_fields(letter.reason), *redacted_fields("details", letter.details)),
        *generation_fields(keys),
    )
    return join(
        (
            operation("XADD", key, "MAXLEN", "~", STREAM_LENGTH, "*", *entry),
            operation("PEXPIRE", key, keep_ms),
        )
    )


def reason_fields(reason: str | Text, most: int | None = None) -> tuple[str, ...]:
    """Return the fields of a reason: English without secrets, and its id with values where it has none."""
    stated = str(reason)
    hidden = hide_secrets(stated)
    if isinstance(reason, str) or hidden != stated[:most]:
        return "reason", hidden[:most]
    return "reason", hidden, _TEXT, msgspec.json.encode(reason).decode()


def _reason(found: Mapping[str, str]) -> str | Text:
    """Return a reason as it was stored; earlier versions stored English only."""
    return msgspec.json.decode(found[_TEXT], type=Text) if _TEXT in found else found["reason"]


def redacted_fields(name: str, data: Mapping[str, str]) -> tuple[str, ...]:
    """Return a field with data without secrets, and a mark if there were any."""
    hidden = hide_in_data(data)
    mark = (_REDACTED, "1") if hidden != data else ()
    return name, msgspec.json.encode(hidden).decode(), *mark


def delete(keys: Keys, letter_id: str) -> Commit:
    """Delete a letter."""
    if letter_id.startswith(_TELEMETRY):
        return operation("XDEL", keys.telemetry_dlq(), letter_id.removeprefix(_TELEMETRY))
    if letter_id.startswith(_LATE):
        return operation("XDEL", keys.late_results(), letter_id.removeprefix(_LATE))
    return operation("XDEL", keys.sfc_dead_letters(), letter_id)


async def load_all(store: Store) -> dict[str, Letter]:
    """Return every letter by its id: those of jobs, late results, batches of telemetry; of each the oldest first."""
    keys = store.keys
    streams = keys.sfc_dead_letters(), keys.late_results(), keys.telemetry_dlq()
    of_jobs, late, batches = await store.read([("XRANGE", key, "-", "+") for key in streams])
    letters = {entry.entry_id: _letter(entry) for entry in entries(of_jobs)}
    letters |= {f"{_LATE}{entry.entry_id}": _letter(entry) for entry in entries(late)}
    return letters | {f"{_TELEMETRY}{entry.entry_id}": _batch_letter(entry) for entry in entries(batches)}


def queries_of_count(keys: Keys) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the commands that count the letters of jobs, and the late results."""
    return ("XLEN", keys.sfc_dead_letters()), ("XLEN", keys.late_results())


class LateCursor(Struct, frozen=True):
    """The last late results that were published: of an earlier release among the letters, then of their own stream."""

    letters: str = ""
    results: str = ""


async def last_published(store: Store, scope: str) -> LateCursor:
    """Return the last late results of a scope that were published."""
    fields = _cursor_field(scope, ""), _cursor_field(scope, _LATE)
    letters, results = await store.execute("HMGET", store.keys.publisher_cursors(), *fields)
    return LateCursor(letters or "", results or "")


class LateResultPage(Struct, frozen=True):
    """The late results after a cursor by their ids, the oldest first, and the cursor after all that was read."""

    letters: Mapping[str, Letter]
    end: LateCursor


async def load_late(store: Store, after: LateCursor) -> LateResultPage:
    """Return the late results after those of a cursor."""
    keys = store.keys
    of_jobs, late = await store.read(
        [
            ("XRANGE", keys.sfc_dead_letters(), f"({after.letters}" if after.letters else "-", "+"),
            ("XRANGE", keys.late_results(), f"({after.results}" if after.results else "-", "+"),
        ]
    )
    letters = {entry.entry_id: _letter(entry) for entry in entries(of_jobs)}
    results = {f"{_LATE}{entry.entry_id}": _letter(entry) for entry in entries(late)}
    end = LateCursor(next(reversed(letters), after.letters), next(reversed(results), after.results).removeprefix(_LATE))
    earlier = {id: letter for id, letter in letters.items() if letter.kind is LetterKind.LATE}
    return LateResultPage(earlier | results, end)


def save_published(keys: Keys, scope: str, letter_id: str) -> Commit:
    """Record the last late result of a scope that was published."""
    stream = _LATE if letter_id.startswith(_LATE) else ""
    return operation("HSET", keys.publisher_cursors(), _cursor_field(scope, stream), letter_id.removeprefix(stream))


def _cursor_field(scope: str, stream: str) -> str:
    return f"{scope}/late-results" if stream else f"{scope}/late"


def event_id(letter_id: str, letter: Letter) -> str:
    """Return the id of the event of a late result."""
    return "/".join(filter(None, (letter.scope, "late", letter.generation, letter_id.removeprefix(_LATE))))


def _batch_letter(entry: Entry) -> Letter:
    """Return a batch that was set aside; its details are the fields of the batch."""
    found = entry.fields
    fields = msgspec.json.decode(found["fields"], type=dict[str, str])
    return Letter(LetterKind.TELEMETRY, "", "", _reason(found), int(found["at"]), fields, _REDACTED in found)


def _letter(entry: Entry) -> Letter:
    found = entry.fields
    return Letter(
        kind=LetterKind(found["kind"]),
        scope=found["scope"],
        job_id=found["job_id"],
        reason=_reason(found),
        at=int(found["at"]),
        details=msgspec.json.decode(found["details"], type=dict[str, str]),
        is_redacted=_REDACTED in found,
        generation=found.get(GENERATION, ""),
    )


REFUSED_COUNTER = "refused"
DECLINED_COUNTER = "declined"
MOST_REFUSED = 1000
_KEPT_BYTES = 4096
_READ_BYTES = 65_536
_KEPT_CHARACTERS = 1000
"""The limit of each other text: some of them come from the sender."""


class RefusedMessage(Struct, frozen=True):
    """A refused message or a declined call: where it came from, the reason, and the beginning of its payload."""

    way: str
    event_type: str
    event_id: str
    kind: str
    reason: str | Text
    payload: bytes
    at: int | None = None
    """When it was stored, in milliseconds since the epoch; read from the store."""


def record_refusal(keys: Keys, message: RefusedMessage, count: int = 1) -> Commit:
    """Store a refused message among the newest; count it with those before it that were not stored."""
    return join((_append(keys, message), operation("INCRBY", keys.counter(REFUSED_COUNTER), count)))


def record_decline(keys: Keys, call: RefusedMessage) -> Commit:
    """Store a declined call among the newest refused messages, and count it apart from them."""
    return join((_append(keys, call), operation("INCR", keys.counter(DECLINED_COUNTER))))


def _append(keys: Keys, message: RefusedMessage) -> Commit:
    texts = {
        "way": message.way,
        "type": message.event_type,
        "id": message.event_id,
        "kind": message.kind,
    }
    cut = {name: text[:_KEPT_CHARACTERS] for name, text in texts.items()}
    # A longer payload is not read whole: secrets in its beginning are found by their form.
    payload = hide_in_payload(message.payload[:_READ_BYTES])[:_KEPT_BYTES]
    entry = *fields(cut | {"payload": payload}), *reason_fields(message.reason, _KEPT_CHARACTERS)
    return operation("XADD", keys.event_refused_list(), "MAXLEN", "~", MOST_REFUSED, "*", *entry)


async def newest_refused(store: Store, many: int) -> list[RefusedMessage]:
    """Return the last refused messages and declined calls, newest first; payloads as they were stored."""
    reply = await store.execute("XREVRANGE", store.keys.event_refused_list(), "+", "-", "COUNT", many)
    return [
        RefusedMessage(
            way=entry.fields["way"],
            event_type=entry.fields["type"],
            event_id=entry.fields["id"],
            kind=entry.fields["kind"],
            reason=_reason(entry.fields),
            payload=entry.fields["payload"].encode(),
            at=int(entry.entry_id.partition("-")[0]),
        )
        for entry in entries(reply)
    ]


async def count_refused(store: Store, counter: str = REFUSED_COUNTER) -> int:
    """Return a counter since the store was created. Raises Refused when it cannot be read."""
    key = store.keys.counter(counter)
    text = await store.execute("GET", key)
    try:
        return int(text or 0)
    except ValueError as error:
        advice = Text.of("Find out who has written it, then start again: redis-cli DEL {key}", key=key)
        raise Refused(
            "unreadable", Text.of("the counter cannot be read: {key} holds {text!r}", key=key, text=text), advice
        ) from error
