"""States of rules as text for the store, and the facts about the stream that a processor continues from."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rules.baseline import BaselineState, WindowSample, with_window, without_window
from edge.features.telemetry.rules.running_jobs import RunningJobs
from edge.features.telemetry.rules.subject_state import SubjectState

MAX_PRODUCERS: Final = 32
"""Producers whose last batch is remembered; the ones that appended longest ago are forgotten first."""


class StreamFacts(msgspec.Struct, frozen=True):
    """The instant of the last evaluation, the running jobs, the last batch of each producer."""

    at: int = 0
    jobs: RunningJobs = RunningJobs()
    producers: dict[str, int] = {}

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
    """Return facts of a text; an empty text stands for none. Raises msgspec.DecodeError."""
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
