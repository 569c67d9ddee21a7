"""The rule kinds `rate`, `share` and `enters`: a sample compared with the ones before it."""

from typing import Any

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import RateRule, ShareRule

NOT_OK = "NotOK"
MAX_VALUES = 1_000
"""Different values of a subject in a job that are remembered; the oldest are forgotten first."""


class RateState(msgspec.Struct, frozen=True, tag="rate", omit_defaults=True):
    """The sample before."""

    at: int = 0
    value: float | None = None
    holds: bool = False


def observe_rate(rule: RateRule, state: RateState, value: float, at: int) -> RateState:
    """Return the state after a sample; one of the same instant as the sample before is ignored."""
    if state.value is None:
        return RateState(at, value, state.holds)
    if at == state.at:
        return state
    return RateState(at, value, abs(value - state.value) / ((at - state.at) / 1000) > rule.per_second)


class ShareState(msgspec.Struct, frozen=True, tag="share", omit_defaults=True):
    """The last results: whether each was bad."""

    recent: tuple[bool, ...] = ()
    holds: bool = False


def observe_share(rule: ShareRule, state: ShareState, value: Any) -> ShareState:
    """Return the state after a result; `false` and "NotOK" are bad."""
    recent = (*state.recent, value is False or value == NOT_OK)[-rule.of :]
    return ShareState(recent, sum(recent) >= rule.bad)


class EntersState(msgspec.Struct, frozen=True, tag="enters", omit_defaults=True):
    """The values that a subject had in each running job, and its last value."""

    seen: dict[str, tuple[str, ...]] = {}
    last: str | None = None


def observe_value(state: EntersState, value: Any, job: str | None) -> tuple[EntersState, bool]:
    """Return the state after a sample, and whether the value is new: in its job, else against the value before."""
    key = _key(value)
    if job is None:
        return replace(state, last=key), state.last is not None and key != state.last
    seen = state.seen.get(job, ())
    if key in seen:
        return replace(state, last=key), False
    return EntersState(state.seen | {job: (*seen, key)[-MAX_VALUES:]}, key), True


def forget_job(state: EntersState, job: str) -> EntersState:
    """Return the state without the values of a job that has ended."""
    return replace(state, seen={text: values for text, values in state.seen.items() if text != job})


def _key(value: Any) -> str:
    """Return a text that is equal for equal values only; 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except (ValueError, OverflowError):
        # Integers beyond 64 bits, which JSON texts may hold and this encoder does not write.
        return repr(value)
