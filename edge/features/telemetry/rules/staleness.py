"""The rule kind `stale`: no good or uncertain sample for a time."""

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import StaleRule
from edge.features.telemetry.rules.running_jobs import RunningJobs


class StaleState(msgspec.Struct, frozen=True, tag="stale", omit_defaults=True):
    """The instant of the last sample, or since when the subject is watched."""

    since: int = 0
    holds: bool = False


def observe(at: int) -> StaleState:
    """Return the state after a sample."""
    return StaleState(at)


def pass_time(rule: StaleRule, state: StaleState, now: int, jobs: RunningJobs) -> StaleState:
    """Return the state at an instant; with `while` staleness counts from its beginning at the earliest."""
    end = _end(rule, state, jobs)
    return replace(state, holds=end is not None and now >= end)


def next_end(rule: StaleRule, state: StaleState, jobs: RunningJobs) -> int | None:
    """Return when the subject becomes stale; None when it is, or when the rule does not hold now."""
    return None if state.holds else _end(rule, state, jobs)


def _end(rule: StaleRule, state: StaleState, jobs: RunningJobs) -> int | None:
    since = state.since
    if rule.while_ is not None:
        begin = jobs.open_since(rule)
        if begin is None:
            return None
        since = max(since, begin)
    return since + round(rule.seconds * 1000)
