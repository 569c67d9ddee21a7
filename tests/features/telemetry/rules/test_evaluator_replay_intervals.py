"""Three kinds are checked against a second implementation with intervals and whole windows.

Written from the sentences of the specification; it shares no code with `edge.features.telemetry.rules` but the samples.
"""

import statistics
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias

import pytest

from edge.features.telemetry.rules.evaluator import replay
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports.sample_lines import Sample

Event: TypeAlias = tuple[int, str, int]
Values: TypeAlias = Sequence[tuple[int, float]]
_BEFORE = 0
"""The phase of an instant in which delays end; its lines follow, each with its number."""


def replayed(rule: dict[str, Any], values: Values, until: int) -> list[Event]:
    rules, faults = parse_rules([{"id": "r", "tag": "t", "severity": 500} | rule])
    assert faults == ()
    findings = replay(rules, [Sample(at, "t", value) for at, value in values], until)
    return [(finding.at, finding.event.value, finding.severity) for finding in findings]


def events_of(changes: list[tuple[int, int, int]]) -> list[Event]:
    """Return the events of a severity that changes at (instant, phase, severity)."""
    events: list[Event] = []
    severity = 0
    for at, _, new in changes:
        if new != severity:
            name = "raised" if not severity else "cleared" if not new else "escalated" if new > severity else "eased"
            events.append((at, name, new or severity))
        severity = new
    return events


def switches(values: Values, limit: float, band: float, delays: tuple[int, int], until: int) -> list[tuple[int, int]]:
    """Return when a high level becomes active and inactive in turn, as (instant, phase)."""
    runs: list[tuple[bool, int, int]] = []
    for number, (at, value) in enumerate(values, 1):
        inside = True if value > limit else False if value <= limit - band else None
        if inside is not None and (runs[-1][0] if runs else False) is not inside:
            runs.append((inside, at, number))
    found: list[tuple[int, int]] = []
    for number, (inside, begin, line) in enumerate(runs):
        delay = delays[0] if inside else delays[1]
        moment = (begin + delay, _BEFORE if delay else line)
        end = runs[number + 1][1] if number + 1 < len(runs) else until
        is_active = len(found) % 2 == 1
        # The end of a delay at the instant of a line comes before that line.
        if moment[0] <= end and inside is not is_active:
            found.append(moment)
    return found


def limit_events(rule: dict[str, Any], values: Values, until: int) -> list[Event]:
    band, delays = rule["hysteresis"], (rule["on_delay_seconds"] * 1000, rule["off_delay_seconds"] * 1000)
    levels: list[tuple[int, list[tuple[int, int]]]] = []
    for name, level in rule["limits"].items():
        sign = -1 if name.startswith("low") else 1
        signed = [(at, sign * value) for at, value in values]
        levels.append((level["severity"], switches(signed, sign * level["at"], band, delays, until)))
    moments = sorted({moment for _, found in levels for moment in found})
    changes = []
    for moment in moments:
        active = [severity for severity, found in levels if sum(row <= moment for row in found) % 2]
        changes.append((*moment, max(active, default=0)))
    return events_of(changes)


@pytest.mark.parametrize("seed", range(100))
def test_limit_agrees_with_its_intervals(seed: int) -> None:
    chance = Random(seed)
    edges = sorted(chance.sample(range(1, 20), 4))
    names = chance.sample(["low_low", "low", "high", "high_high"], chance.randint(1, 4))
    at_of = dict(zip(("low_low", "low", "high", "high_high"), edges, strict=True))
    rule = {
        "kind": "limit",
        "limits": {name: {"at": at_of[name], "severity": chance.randint(1, 9) * 100} for name in names},
        "hysteresis": chance.choice([0, 1, 3]),
        "on_delay_seconds": chance.choice([0, 0, 1, 3]),
        "off_delay_seconds": chance.choice([0, 0, 2, 5]),
    }
    at, values = 0, []
    for _ in range(60):
        values.append((at, chance.randint(0, 20)))
        at += chance.choice([0, 500, 1000, 1000, 2500])
    until = at + chance.choice([0, 1000, 9000])
    assert replayed(rule, values, until) == limit_events(rule, values, until)


@pytest.mark.parametrize("seed", range(50))
def test_baseline_agrees_with_complete_windows(seed: int) -> None:
    chance = Random(seed)
    seconds, sigma, least = chance.choice([5, 20, 300]), chance.choice([1, 1.5, 2, 3]), chance.choice([2, 5, 20])
    at, values = 0, []
    for _ in range(150):
        values.append((at, round(chance.gauss(50, 3) + (20 if chance.random() < 0.03 else 0), 1)))
        at += chance.choice([0, 100, 700, 1300])
    changes, holds = [], False
    for number, (now, value) in enumerate(values, 1):
        window = [other for then, other in values if now - seconds * 1000 < then < now]
        deviation = statistics.stdev(window) if len(window) > 1 else 0.0
        if len(window) >= least and deviation > 0:
            holds = abs(value - statistics.fmean(window)) > sigma * deviation
        changes.append((now, number, 500 if holds else 0))
    rule = {"kind": "baseline", "window_seconds": seconds, "sigma": sigma, "min_samples": least}
    assert replayed(rule, values, at) == events_of(changes)


NELSON: dict[int, Any] = {
    1: lambda z: abs(z[-1]) > 3,
    2: lambda z: len(z) >= 9 and (all(score > 0 for score in z[-9:]) or all(score < 0 for score in z[-9:])),
    3: lambda z: len(z) >= 6 and (_rises(z[-6:]) or _rises([-score for score in z[-6:]])),
    4: lambda z: len(z) >= 14 and all((z[n] - z[n - 1]) * (z[n - 1] - z[n - 2]) < 0 for n in range(-12, 0)),
    5: lambda z: len(z) >= 3 and any(sum(sign * score > 2 for score in z[-3:]) >= 2 for sign in (1, -1)),
    6: lambda z: len(z) >= 5 and any(sum(sign * score > 1 for score in z[-5:]) >= 4 for sign in (1, -1)),
    7: lambda z: len(z) >= 15 and all(abs(score) <= 1 for score in z[-15:]),
    8: lambda z: (
        len(z) >= 8
        and all(abs(score) > 1 for score in z[-8:])
        and any(score > 0 for score in z[-8:])
        and any(score < 0 for score in z[-8:])
    ),
}


def _rises(values: list[float]) -> bool:
    return all(later > before for before, later in pairwise(values))


@pytest.mark.parametrize("seed", range(50))
def test_control_chart_agrees_with_patterns_over_the_complete_series(seed: int) -> None:
    chance = Random(seed)
    tests = chance.sample(range(1, 9), chance.randint(1, 3))
    spread = chance.choice([0.5, 1, 1.6])
    values, drift = [], 0.0
    for number in range(150):
        drift += chance.choice([0, 0, 0, 0.3, -0.3])
        # Halves are exact: points lie on limits now and then.
        values.append((number * 1000, 10 + round(2 * (chance.gauss(0, spread) + drift)) / 2))
    z: list[float] = []
    changes = []
    for number, (now, value) in enumerate(values, 1):
        z.append(value - 10)
        changes.append((now, number, 500 if any(NELSON[test](z) for test in tests) else 0))
    rule = {"kind": "control_chart", "nelson": tests, "mean": 10, "sigma": 1}
    assert replayed(rule, values, values[-1][0]) == events_of(changes)
