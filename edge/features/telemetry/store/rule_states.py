"""States of rules in the store: one hash under one revision, and a list for each window of a baseline rule."""

import hashlib
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct, field

from edge.store.client import Store
from edge.store.commit import Commit, at_revision, fields, join, operation, spread
from edge.store.keys import Keys

_REVISION: Final = "rev"
_FACTS: Final = "facts"
_RULES: Final = "rules"

RuleSubject: TypeAlias = tuple[str, str]
"""The id of a rule and one of its subjects."""


class StoredStates(Struct, frozen=True):
    """The state from which a processor continues: facts about the stream and the state of each subject, all as text."""

    revision: int = 0
    facts: str = ""
    states: Mapping[RuleSubject, str] = field(default_factory=dict)
    rules: str = ""
    """The rules to which the states belong."""


class WindowChange(Struct, frozen=True):
    """Parts of a window to append, as text, and the number of newest parts to keep; None keeps all, 0 deletes it.

    Parts whose samples have left the window do no harm.
    """

    added: tuple[str, ...] = ()
    kept: int | None = 0


async def load(store: Store) -> StoredStates:
    """Read the facts and all states."""
    stored = await store.execute("HGETALL", store.keys.telemetry_state())
    states = {_subject(name): text for name, text in stored.items() if name not in {_REVISION, _FACTS, _RULES}}
    return StoredStates(int(stored.get(_REVISION, 0)), stored.get(_FACTS, ""), states, stored.get(_RULES, ""))


def save(
    keys: Keys, revision: int, facts: str, states: Mapping[RuleSubject, str | None], rules: str | None = None
) -> Commit:
    """Write the facts and changed states, None for one that is removed, and the rules unless they are the same (None).

    `revision` is the one that was read.
    """
    key = keys.telemetry_state()
    written = {_name(subject): text for subject, text in states.items() if text is not None}
    gone = [_name(subject) for subject, text in states.items() if text is None]
    head = {_REVISION: str(revision + 1), _FACTS: facts}
    if rules is not None:
        head[_RULES] = rules
    return join(
        (
            guard(keys, revision),
            spread("HSET", (key,), fields(head | written)),
            spread("HDEL", (key,), gone),
        )
    )


def guard(keys: Keys, revision: int) -> Commit:
    """Return a commit of nothing that fails when the states have another revision."""
    return Commit((at_revision(keys.telemetry_state(), revision),))


async def load_window(store: Store, subject: RuleSubject) -> list[str]:
    """Read the parts of a window, the oldest first."""
    parts: list[str] = await store.execute("LRANGE", store.keys.telemetry_window(_digest(subject)), 0, -1)
    return parts


def save_window(keys: Keys, subject: RuleSubject, change: WindowChange) -> Commit:
    """Append parts to a window and drop the oldest ones."""
    key = keys.telemetry_window(_digest(subject))
    if change.kept == 0:
        return operation("DEL", key)
    appended = spread("RPUSH", (key,), change.added)
    return appended if change.kept is None else join((appended, operation("LTRIM", key, -change.kept, -1)))


def _name(subject: RuleSubject) -> str:
    return msgspec.json.encode(subject).decode()


def _subject(name: str) -> RuleSubject:
    found: RuleSubject = msgspec.json.decode(name, type=tuple[str, str])
    return found


def _digest(subject: RuleSubject) -> str:
    return hashlib.sha256(_name(subject).encode()).hexdigest()[:24]
