"""The states of all rules in memory, their texts for the store, and the commit of what changed since the last one."""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from edge.features.telemetry import keys as telemetry_keys
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rules.baseline import (
    BaselineState,
    WindowSample,
    latest_of,
    window_length,
    with_window,
    without_window,
)
from edge.features.telemetry.rules.evaluator import Key, RuleEvaluator
from edge.features.telemetry.rules.subject import RunningJobs
from edge.features.telemetry.rules.subject_state import SubjectState
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
    stored = await store.execute("HGETALL", telemetry_keys.telemetry_state(store.keys))
    states = {_subject(name): text for name, text in stored.items() if name not in {_REVISION, _FACTS, _RULES}}
    return StoredStates(int(stored.get(_REVISION, 0)), stored.get(_FACTS, ""), states, stored.get(_RULES, ""))


def save(
    keys: Keys, revision: int, facts: str, states: Mapping[RuleSubject, str | None], rules: str | None = None
) -> Commit:
    """Write the facts and changed states, None for one that is removed, and the rules unless they are the same (None).

    `revision` is the one that was read.
    """
    key = telemetry_keys.telemetry_state(keys)
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
    return Commit((at_revision(telemetry_keys.telemetry_state(keys), revision),))


async def load_window(store: Store, subject: RuleSubject) -> list[str]:
    """Read the parts of a window, the oldest first."""
    parts: list[str] = await store.execute(
        "LRANGE", telemetry_keys.telemetry_window(store.keys, _digest(subject)), 0, -1
    )
    return parts


def save_window(keys: Keys, subject: RuleSubject, change: WindowChange) -> Commit:
    """Append parts to a window and drop the oldest ones."""
    key = telemetry_keys.telemetry_window(keys, _digest(subject))
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


MAX_PRODUCERS: Final = 32
"""Producers whose last batch is remembered; the ones that appended longest ago are forgotten first."""


class StreamFacts(msgspec.Struct, frozen=True):
    """The instant of the last evaluation, the running jobs, the last batch of each producer."""

    at: int = 0
    jobs: RunningJobs = RunningJobs()
    producers: dict[str, int] = {}

    def has(self, producer: str, number: int) -> bool:
        """Return whether a batch of a producer was evaluated before."""
        return bool(producer) and self.producers.get(producer, 0) >= number

    def with_batch(self, producer: str, number: int) -> "StreamFacts":
        """Return the facts after a batch of a producer."""
        if not producer:
            return self
        others = {name: last for name, last in self.producers.items() if name != producer}
        newest = [*others.items(), (producer, number)][-MAX_PRODUCERS:]
        return replace(self, producers=dict(newest))


def encode_facts(facts: StreamFacts) -> str:
    """Return facts as text."""
    return msgspec.json.encode(facts).decode()


def decode_facts(text: str) -> StreamFacts:
    """Return facts of a text; an empty text means none. Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=StreamFacts) if text else StreamFacts()


def digest_of(rule: Rule) -> str:
    """Return a digest of what a rule detects: with another one its states begin again."""
    return hashlib.sha256(msgspec.json.encode(rule, order="deterministic")).hexdigest()[:16]


def encode_digests(digests: dict[str, str]) -> str:
    """Return the digests of rules, by their ids, as text."""
    return msgspec.json.encode(digests).decode()


def decode_digests(text: str) -> dict[str, str]:
    """Return the digests of a text; none for one that cannot be read: then all states begin again."""
    try:
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except msgspec.DecodeError:
        return {}


def encode_state(state: SubjectState) -> str:
    """Return a state as text, without the window of a baseline."""
    if isinstance(state.detector, BaselineState):
        state = replace(state, detector=without_window(state.detector))
    return msgspec.json.encode(state).decode()


def decode_state(text: str, window: Iterable[WindowSample]) -> SubjectState:
    """Return the state of a text and, for a baseline, of its window. Raises msgspec.DecodeError."""
    state = msgspec.json.decode(text, type=SubjectState)
    if isinstance(state.detector, BaselineState):
        return replace(state, detector=with_window(state.detector, window))
    return state


def encode_window(samples: Sequence[WindowSample]) -> str:
    """Return samples as text: the instant and value of the first one, then the distance and value of each other."""
    numbers: list[float] = []
    before = 0
    for at, value in samples:
        numbers += (at - before, value)
        before = at
    return json.dumps(numbers, separators=(",", ":"))


def decode_window(text: str) -> list[WindowSample]:
    """Return the samples of a part of a window. Raises msgspec.DecodeError and ValueError."""
    numbers: list[float] = msgspec.json.decode(text, type=list[float], strict=True)
    samples: list[WindowSample] = []
    at = 0
    for distance, value in zip(numbers[::2], numbers[1::2], strict=True):
        at += int(distance)
        samples.append((at, value))
    return samples


logger = structlog.get_logger(__name__)

_TRIM_EVERY: Final = 8
"""Parts of a window after which old ones are removed from the store: each removal wears the flash."""

_States: TypeAlias = dict[Key, SubjectState]


class StoredWindow:
    """The window of a baseline as it is stored: in parts, each with the samples of one commit."""

    def __init__(self, taken: int = 0, parts: Iterable[int] = ()) -> None:
        """Restore a window; `taken` is the number of all its samples so far, `parts` that of each stored part."""
        self._taken = taken
        self._parts = deque(parts)
        self._length = sum(self._parts)
        self._untrimmed = 0

    def change_to(self, state: BaselineState) -> WindowChange:
        """Return what to write for the window of a state."""
        length = window_length(state)
        added = latest_of(state, min(state.taken - self._taken, length))
        self._taken = state.taken
        if not length:
            self._parts.clear()
            self._length = 0
            return WindowChange()
        text = (encode_window(added),) if added else ()
        if added:
            self._parts.append(len(added))
            self._length += len(added)
            self._untrimmed += 1
        if self._untrimmed < _TRIM_EVERY:
            return WindowChange(text, None)
        self._untrimmed = 0
        while self._length - self._parts[0] >= length:
            self._length -= self._parts.popleft()
        return WindowChange(text, len(self._parts))


class RuleMemory:
    """The evaluator of the rules, with the revision that guards its states in the store."""

    def __init__(
        self,
        rules: Sequence[Rule],
        evaluator: RuleEvaluator,
        facts: StreamFacts,
        revision: int,
        windows: dict[Key, StoredWindow],
    ) -> None:
        self.rules = rules
        self.evaluator = evaluator
        self.facts = facts
        self._revision = revision
        self._windows = windows
        self._gone: dict[RuleSubject, None] = {}
        self._unsaved_rules: str | None = None
        self._written: dict[Key, str] = {}
        """The texts of the baselines, which rarely change."""

    def save_rules(self, text: str) -> None:
        """Write the rules with the next commit."""
        self._unsaved_rules = text

    def forget(self, subjects: Sequence[RuleSubject]) -> None:
        """Remove states of rules that no longer exist, or that detect something else now, with the next commit."""
        self._gone |= dict.fromkeys(subjects)

    def guard(self, keys: Keys) -> Commit:
        """Return a commit that fails when the states in the store are others than these."""
        return guard(keys, self._revision)

    def plan_commit(self, keys: Keys, facts: StreamFacts) -> Commit:
        """Return the commit of the facts and of every state that changed."""
        changed = self.evaluator.take_changed()
        texts: dict[RuleSubject, str | None] = dict.fromkeys(self._gone)
        windows = [save_window(keys, row, WindowChange()) for row in self._gone]
        for key, state in changed.items():
            subject = (self.rules[key[0]].id, key[1])
            text = None if state is None else encode_state(state)
            # Of a baseline mostly the window alone changes.
            if text is None or self._written.get(key) != text:
                texts[subject] = text
            if text is not None and state is not None and isinstance(state.detector, BaselineState):
                self._written[key] = text
                window = self._windows.setdefault(key, StoredWindow())
                windows.append(save_window(keys, subject, window.change_to(state.detector)))
        self._gone = {}
        saved = save(keys, self._revision, encode_facts(facts), texts, self._unsaved_rules)
        self._unsaved_rules = None
        self._revision += 1
        self.facts = facts
        return join((saved, *windows))


async def load_memory(store: Store, rules: Sequence[Rule], now: int) -> RuleMemory:
    """Return the memory of rules as the store has it; states of other rules are forgotten with the next commit."""
    stored_states = await load(store)
    try:
        facts = decode_facts(stored_states.facts)
    except msgspec.DecodeError as error:
        logger.error("facts of telemetry cannot be read, starting again", reason=str(error))
        facts = StreamFacts()
    digests = {rule.id: digest_of(rule) for rule in rules}
    known = decode_digests(stored_states.rules)
    numbers = {rule.id: number for number, rule in enumerate(rules) if known.get(rule.id) == digests[rule.id]}
    states: _States = {}
    windows: dict[Key, StoredWindow] = {}
    gone: list[RuleSubject] = []
    for subject, text in stored_states.states.items():
        number = numbers.get(subject[0])
        loaded = None if number is None else await _load_state(store, subject, text)
        if number is None or loaded is None:
            gone.append(subject)
        else:
            states[number, subject[1]], windows[number, subject[1]] = loaded
    evaluator = RuleEvaluator(rules, max(now, facts.at))
    evaluator.restore(states, facts.jobs)
    memory = RuleMemory(rules, evaluator, facts, stored_states.revision, windows)
    if known != digests:
        memory.save_rules(encode_digests(digests))
    memory.forget(gone)
    return memory


async def _load_state(store: Store, subject: RuleSubject, text: str) -> tuple[SubjectState, StoredWindow] | None:
    """Return a state and its window in the store; None for one that cannot be read, which is logged."""
    try:
        parts = await load_window(store, subject) if '"baseline"' in text else []
        window = [decode_window(word) for word in parts]
        state = decode_state(text, [sample for part in window for sample in part])
    except (ValueError, msgspec.DecodeError) as error:
        logger.error("state of a rule cannot be read", rule=subject[0], subject=subject[1], reason=str(error))
        return None
    taken = state.detector.taken if isinstance(state.detector, BaselineState) else 0
    return state, StoredWindow(taken, map(len, window))
