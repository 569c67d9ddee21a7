"""Random rules and samples: the evaluator agrees with the naive one."""

import math
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edge.features.telemetry.rules.evaluator import replay
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports.sample_lines import Line, Occurrence, Quality, Sample
from tests.examples import examples
from tests.features.telemetry.rules import naive

ODD_VALUES = [2.5, math.nan, math.inf, None, "NotOK", "x", True, False]
QUALITIES = [*[Quality.GOOD] * 8, Quality.UNCERTAIN, Quality.BAD]
KINDS = ["limit", "limit", "baseline", "control_chart", "rate", "stale", "share", "enters", "occurs", "expression"]


def history(chance: Random) -> list[Line]:
    """Return 5 to 45 lines: mostly numbers of two tags, some odd values, starts and ends of two jobs."""
    at = 0
    lines: list[Line] = []
    gaps = chance.choice([[0, 1], [0, 1, 1, 2, 5], [1]])
    odd = chance.choice([0, 0.1, 0.4])
    for _ in range(chance.randint(5, 45)):
        at += chance.choice(gaps) * naive.SECOND
        if chance.random() < chance.choice([0, 0.25]):
            name = chance.choice(["job.started", "job.started", "job.ended", "evt"])
            lines.append(Occurrence(at, name, chance.choice(["J", "K", None]), None))
        else:
            value = chance.choice(ODD_VALUES) if chance.random() < odd else chance.randint(-4, 9)
            lines.append(Sample(at, chance.choice("aaab"), value, chance.choice(QUALITIES)))
    return lines


def of_kind(kind: str, chance: Random) -> dict[str, Any]:
    """Return the members of a kind."""
    match kind:
        case "limit":
            levels = {"low_low": -2, "low": 0, "high": 4, "high_high": 7}
            names = chance.sample(sorted(levels), chance.randint(1, 4))
            return {
                "limits": {
                    name: {"at": levels[name], "severity": chance.choice([100, 200, 300])} for name in sorted(names)
                },
                "hysteresis": chance.choice([0, 0, 1, 3]),
                "on_delay_seconds": chance.choice([0, 0, 1, 3]),
                "off_delay_seconds": chance.choice([0, 0, 1, 3]),
            }
        case "baseline":
            window, least = chance.randint(2, 12), chance.randint(0, 4)
            return {"window_seconds": window, "sigma": chance.choice([0.77, 1.31]), "min_samples": least}
        case "control_chart":
            known = (
                {"learn": chance.randint(2, 5)}
                if chance.random() < 0.4
                else {"mean": 2, "sigma": chance.choice([1, 2])}
            )
            return known | {"nelson": chance.sample(range(1, 9), chance.randint(1, 3))}
        case "rate":
            return {"per_second": chance.randint(0, 6)}
        case "stale":
            return {"seconds": chance.randint(1, 6)}
        case "share":
            return {"bad": chance.randint(1, 2), "of": chance.randint(2, 4)}
        case "occurs":
            return {"pattern": chance.choice(["evt", "job.started", "job.ended", "*"])}
        case "expression":
            return {"when": chance.choice(sorted(naive.CONDITIONS))}
        case _:
            return {}


def rule(number: int, chance: Random) -> dict[str, Any]:
    """Return a rule of any kind with some of the common members."""
    kind = chance.choice(KINDS)
    found: dict[str, Any] = {"id": f"r{number}", "kind": kind, "severity": 500} | of_kind(kind, chance)
    if kind not in {"occurs", "expression"}:
        found["tag"] = chance.choice("aa*")
    options = {
        "while": "job.running",
        "once": "job",
        "cooldown_seconds": chance.randint(0, 6),
        "bypass_cooldown": chance.choice([True, False]),
    }
    return found | {name: value for name, value in options.items() if chance.random() < 0.25}


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2**32))
def test_evaluator_agrees_with_the_naive_evaluator(seed: int) -> None:
    chance = Random(seed)
    rules = [rule(number, chance) for number in range(chance.randint(1, 3))]
    lines = history(chance)
    until = chance.choice([None, lines[-1].at + 10 * naive.SECOND, lines[len(lines) // 2].at])
    parsed, faults = parse_rules(rules)
    assert faults == ()
    found = [
        (finding.at, finding.rule, finding.subject, finding.event.value, finding.severity)
        for finding in replay(parsed, lines, until)
    ]
    assert found == naive.findings(rules, lines, until)
