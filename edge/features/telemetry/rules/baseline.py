"""The rule kind `baseline`: the distance of a sample from the mean of its own recent window.

The window is kept as chunks with their moments (count, mean, sum of squared deviations), merged by the formula of Chan,
Golub and LeVeque (1979): a sample costs the same however long the window is, and rounding errors do not add up.
"""

import math
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import BaselineRule

WindowSample: TypeAlias = tuple[int, float]
"""The instant and the value of a sample."""

CHUNK_LENGTH: Final = 256
MAX_SAMPLES: Final = 100_000
"""Samples that a window holds at most; the oldest leave it early."""
_LEAST_FOR_DEVIATION: Final = 2


class Moments(msgspec.Struct, frozen=True, array_like=True):
    """Count, mean and sum of squared deviations of some values."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> "Moments":
        """Return the moments with one more value."""
        count = self.count + 1
        delta = value - self.mean
        mean = self.mean + delta / count
        return Moments(count, mean, self.squares + delta * (value - mean))

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of values."""
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        delta = other.mean - self.mean
        mean = self.mean + delta * other.count / count
        return Moments(count, mean, self.squares + other.squares + delta * delta * self.count * other.count / count)

    @property
    def deviation(self) -> float:
        """Return the sample standard deviation; 0 with fewer than two values."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count >= _LEAST_FOR_DEVIATION else 0.0


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Some samples of a window in order of time."""

    times: tuple[int, ...]
    values: tuple[float, ...]
    moments: Moments


class BaselineState(msgspec.Struct, frozen=True, tag="baseline", omit_defaults=True):
    """The window of a subject; `recent` are samples of the instant `recent_at`, which do not count at that instant.

    `taken` counts all samples that entered the window: it identifies the samples that a copy of the window lacks.
    """

    chunks: tuple[Chunk, ...] = ()
    recent: tuple[float, ...] = ()
    recent_at: int = 0
    holds: bool = False
    taken: int = 0


def observe(rule: BaselineRule, state: BaselineState, value: float, at: int) -> BaselineState:
    """Return the state after a sample, which is compared with the samples before it and then enters the window."""
    chunks = state.chunks
    same_instant = bool(state.recent) and state.recent_at == at
    if not same_instant:
        for number in state.recent:
            chunks = _append(chunks, state.recent_at, number)
    chunks = _trim(chunks, at - round(rule.window_seconds * 1000))
    moments = Moments()
    for chunk in chunks:
        moments = moments.merge(chunk.moments)
    deviation = moments.deviation
    holds = state.holds
    if moments.count >= rule.min_samples and deviation > 0:
        holds = abs(value - moments.mean) > rule.sigma * deviation
    recent = (*state.recent, value) if same_instant else (value,)
    return BaselineState(chunks, recent, at, holds, state.taken + 1)


def latest_of(state: BaselineState, count: int) -> list[WindowSample]:
    """Return the newest samples of the window, at most `count`, in order of time."""
    found = [(state.recent_at, value) for value in state.recent[-count:]] if count else []
    for chunk in reversed(state.chunks):
        if len(found) >= count:
            break
        found = list(zip(chunk.times, chunk.values, strict=True))[len(found) - count :] + found
    return found


def window_length(state: BaselineState) -> int:
    """Return the number of samples of the window."""
    return sum(len(chunk.times) for chunk in state.chunks) + len(state.recent)


def without_window(state: BaselineState) -> BaselineState:
    """Return the state without its window and the values derived from it."""
    return replace(state, chunks=(), recent=(), recent_at=0, taken=0)


def with_window(state: BaselineState, samples: Iterable[WindowSample]) -> BaselineState:
    """Return the state with these samples as its window; those of the last instant are the recent ones."""
    window = list(samples)
    recent_at = window[-1][0] if window else 0
    chunks: tuple[Chunk, ...] = ()
    recent: tuple[float, ...] = ()
    for at, value in window:
        if at == recent_at:
            recent = (*recent, value)
        else:
            chunks = _append(chunks, at, value)
    return replace(state, chunks=chunks, recent=recent, recent_at=recent_at, taken=len(window))


def _append(chunks: tuple[Chunk, ...], at: int, value: float) -> tuple[Chunk, ...]:
    if chunks and len(chunks[-1].times) < CHUNK_LENGTH:
        last = chunks[-1]
        return (*chunks[:-1], Chunk((*last.times, at), (*last.values, value), last.moments.add(value)))
    return (*chunks[-(MAX_SAMPLES // CHUNK_LENGTH) :], Chunk((at,), (value,), Moments().add(value)))


def _trim(chunks: tuple[Chunk, ...], until: int) -> tuple[Chunk, ...]:
    """Return the chunks without the samples up to an instant."""
    first = 0
    while first < len(chunks) and chunks[first].times[-1] <= until:
        first += 1
    chunks = chunks[first:] if first else chunks
    if not chunks or chunks[0].times[0] > until:
        return chunks
    head = chunks[0]
    left = next(number for number, at in enumerate(head.times) if at > until)
    moments = Moments()
    for value in head.values[left:]:
        moments = moments.add(value)
    return (Chunk(head.times[left:], head.values[left:], moments), *chunks[1:])
