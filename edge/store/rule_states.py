"""States of rules in the store: one hash under one revision, and a list for each window of a baseline rule."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from edge.store.client import Store
from edge.store.commit import Commit, RedisCommand, Revision, join, spread
from edge.store.keys import Keys

_REVISION: Final = "rev"
_FACTS: Final = "facts"
_RULES: Final = "rules"

RuleSubject: TypeAlias = tuple[str, str]
"""The id of a rule and one of its subjects."""


@dataclass(frozen=True, slots=True)
class StoredStates:
    """The state from which a processor continues: facts about the stream and the state of each subject, all as text."""

    revision: int = 0
    facts: str = ""
    states: Mapping[RuleSubject, str] = field(default_factory=dict)
    rules: str = ""
    """The rules to which the states belong."""


@dataclass(frozen=True, slots=True)
class WindowChange:
    """Samples that entered a window, as text, and the number that it holds then."""

    added: tuple[str, ...]
    length: int
    trims: bool = True
    """Whether samples that left the window are removed now; more of them in the store do no harm."""


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
    head: list[Any] = [_REVISION, str(revision + 1), _FACTS, facts]
    if rules is not None:
        head += [_RULES, rules]
    return join(
        (
            Commit((Revision(key, revision),), (RedisCommand("HSET", (key, *head)),)),
            spread("HSET", (key,), [each for pair in written.items() for each in pair]),
            spread("HDEL", (key,), gone),
        )
    )


async def load_window(store: Store, subject: RuleSubject) -> list[str]:
    """Read the samples of a window, the oldest first."""
    samples: list[str] = await store.execute("LRANGE", store.keys.telemetry_window(_digest(subject)), 0, -1)
    return samples


def save_window(keys: Keys, subject: RuleSubject, change: WindowChange) -> Commit:
    """Append samples to a window and drop the ones that left it; a window of length 0 is deleted."""
    key = keys.telemetry_window(_digest(subject))
    if not change.length:
        return Commit(operations=(RedisCommand("DEL", (key,)),))
    trim = (RedisCommand("LTRIM", (key, -change.length, -1)),) if change.trims else ()
    return join((spread("RPUSH", (key,), change.added), Commit(operations=trim)))


def _name(subject: RuleSubject) -> str:
    return msgspec.json.encode(subject).decode()


def _subject(name: str) -> RuleSubject:
    found: RuleSubject = msgspec.json.decode(name, type=tuple[str, str])
    return found


def _digest(subject: RuleSubject) -> str:
    return hashlib.sha256(_name(subject).encode()).hexdigest()[:24]
