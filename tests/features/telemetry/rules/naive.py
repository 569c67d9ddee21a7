"""A second, deliberately naive evaluator of rules, written from the sentences of the specification.

It looks at every second and at every line, and works each condition out again from the whole history up to there. All
times are whole seconds. It shares no code with `edge.features.telemetry.rules` but the types of the lines.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from edge.ports.sample_lines import Line, Occurrence, Quality, Sample

SECOND = 1000
Finding: TypeAlias = tuple[int, str, str, str, int]
RuleData: TypeAlias = Mapping[str, Any]
CONDITIONS: dict[str, Callable[[Any, Any], bool | None]] = {
    "a + b > 5": lambda a, b: None if a is None or b is None else a + b > 5,
    "a > 3 or b > 3": lambda a, b: True if (a or 0) > 3 or (b or 0) > 3 else None if a is None or b is None else False,
    "12 / a > 3": lambda a, _: None if not a else 12 / a > 3,
}
"""Conditions over the tags `a` and `b` and the same in Python; None is unknown."""


@dataclass
class Moment:
    """A point of the history: the lines so far, and whether the end of a job in the last one counts already."""

    at: int
    lines: Sequence[Line]
    ended: bool = True
    """False while the `job.ended` of the last line is looked at as an occurrence of its job."""


def findings(rules: Sequence[RuleData], lines: Sequence[Line], until: int | None) -> list[Finding]:
    """Return all findings in order."""
    rows = []
    for number, rule in enumerate(rules):
        for subject in sorted(_subjects(rule, lines)):
            rows += [
                (at, number, place, subject, event, severity)
                for at, place, event, severity in _of_subject(rule, subject, lines, until)
            ]
    rows.sort(key=lambda row: row[:4])
    return [(at, rules[number]["id"], subject, event, severity) for at, number, _, subject, event, severity in rows]


def _moments(lines: Sequence[Line], until: int | None) -> Iterator[Moment]:
    if not lines:
        return
    end = lines[-1].at if until is None else until
    for at in range(lines[0].at, end + 1, SECOND):
        yield Moment(at, [line for line in lines if line.at < at])
        for count, line in enumerate(lines, 1):
            if line.at == at:
                if isinstance(line, Occurrence) and line.name == "job.ended":
                    yield Moment(at, lines[:count], ended=False)
                yield Moment(at, lines[:count])
    yield Moment(end, [line for line in lines if line.at <= end])


def _subjects(rule: RuleData, lines: Sequence[Line]) -> set[str]:
    if rule["kind"] == "expression":
        return {rule["id"]}
    if rule["kind"] == "occurs":
        return {line.job or rule["pattern"] for line in lines if isinstance(line, Occurrence)}
    if rule["tag"] != "*":
        return {rule["tag"]}
    return {line.tag for line in lines if isinstance(line, Sample)}


def _running(moment: Moment) -> list[tuple[str, int]]:
    """Return the running jobs in order of their start, each with the number of the line that started it."""
    running: list[tuple[str, int]] = []
    for number, line in enumerate(moment.lines):
        if not isinstance(line, Occurrence):
            continue
        job = line.job or ""
        if line.name == "job.started" and job not in [text for text, _ in running]:
            running.append((job, number))
        if line.name == "job.ended" and (moment.ended or number < len(moment.lines) - 1):
            running = [row for row in running if row[0] != job]
    return running


def _period_start(moment: Moment) -> int | None:
    """Return the number of the line with which jobs began to run, without a gap since."""
    start = None
    for number in range(len(moment.lines)):
        running = _running(
            Moment(moment.at, moment.lines[: number + 1], ended=moment.ended or number < len(moment.lines) - 1)
        )
        start = None if not running else number if start is None else start
    return start


def _of_subject(
    rule: RuleData, subject: str, lines: Sequence[Line], until: int | None
) -> Iterator[tuple[int, int, str, int]]:
    active = 0
    raises: list[tuple[int, tuple[str, int] | None]] = []
    seen = 0
    for moment in _moments(lines, until):
        new_line = len(moment.lines) > seen
        seen = max(seen, len(moment.lines))
        running = _running(moment)
        open_now = "while" not in rule or bool(running)
        cooling = (
            rule.get("cooldown_seconds", 0)
            and not rule.get("bypass_cooldown")
            and any(moment.at < at + rule["cooldown_seconds"] * SECOND for at, _ in raises)
        )
        job = running[-1] if running else None
        if rule["kind"] == "occurs" and moment.lines and isinstance(moment.lines[-1], Occurrence):
            job = next((row for row in running if row[0] == moment.lines[-1].job), job)
        used = "once" in rule and job is not None and any(row == job for _, row in raises)
        if rule["kind"] in {"enters", "occurs"}:
            fires = new_line and open_now and _fires(rule, subject, moment)
            if fires and not cooling and not used:
                raises.append((moment.at, job))
                yield moment.at, len(moment.lines), "raised", rule["severity"]
            continue
        severity = _severity(rule, subject, moment, lines[0].at) if open_now else 0
        if active and severity != active:
            event = "escalated" if severity > active else "eased" if severity else "cleared"
            yield moment.at, len(moment.lines), event, severity or active
            active = severity
        elif not active and severity and not cooling and not used:
            raises.append((moment.at, job))
            yield moment.at, len(moment.lines), "raised", severity
            active = severity


def _samples(rule: RuleData, subject: str, moment: Moment) -> list[tuple[int, Sample]]:
    """Return the samples that the rule takes, each with its line number."""
    found = []
    for number, line in enumerate(moment.lines):
        if not isinstance(line, Sample) or line.quality is Quality.BAD or line.value is None:
            continue
        if isinstance(line.value, float) and not math.isfinite(line.value):
            continue
        if rule["kind"] == "expression" and line.tag not in {"a", "b"}:
            continue
        if rule["kind"] != "expression" and line.tag != subject:
            continue
        if rule["kind"] not in {"stale", "share", "enters"} and (isinstance(line.value, (bool, str))):
            continue
        if "while" in rule and not _running(Moment(line.at, moment.lines[: number + 1])):
            continue
        found.append((number, line))
    return found


def _severity(rule: RuleData, subject: str, moment: Moment, begin: int) -> int:
    samples = _samples(rule, subject, moment)
    start = _period_start(moment) if "while" in rule else -1
    assert start is not None
    now = [sample for number, sample in samples if number > start]
    """The samples since the rule is open; conditions begin with them, windows with all samples."""
    if rule["kind"] == "limit":
        return max(
            (
                spec.get("severity", rule["severity"])
                for name, spec in rule["limits"].items()
                if _level(rule, name, now, moment.at)
            ),
            default=0,
        )
    everything = [sample for _, sample in samples]
    match str(rule["kind"]):
        case "stale":
            holds = _is_stale(rule, everything, moment, begin, start)
        case "share":
            last = [sample.value is False or sample.value == "NotOK" for sample in everything][-rule["of"] :]
            holds = bool(now) and last.count(True) >= rule["bad"]
        case "rate":
            kept = [sample for n, sample in enumerate(everything) if n == 0 or sample.at != everything[n - 1].at]
            holds = bool(now) and _last(
                now,
                kept,
                lambda n: (
                    abs(kept[n].value - kept[n - 1].value) * SECOND > rule["per_second"] * (kept[n].at - kept[n - 1].at)
                ),
            )
        case "baseline":
            holds = _last_of(len(everything) - len(now), len(everything), lambda n: _deviates(rule, everything, n))
        case "control_chart":
            holds = _last_of(
                len(everything) - len(now),
                len(everything),
                lambda n: _pattern(rule, [sample.value for sample in everything[: n + 1]]),
            )
        case "expression":
            holds = _last_of(
                len(everything) - len(now), len(everything), lambda n: _condition(rule, everything[: n + 1])
            )
        case kind:
            raise ValueError(kind)
    return int(rule["severity"]) if holds else 0


def _last(now: list[Sample], kept: list[Sample], decide: Callable[[int], bool]) -> bool:
    """Return the decision of the last sample that counts and is not before the rule opened."""
    mine = [n for n in range(1, len(kept)) if any(kept[n] is sample for sample in now)]
    return bool(mine) and decide(mine[-1])


def _last_of(first: int, count: int, decide: Callable[[int], bool | None]) -> bool:
    """Return the last decision that was one."""
    decisions = [decision for n in range(first, count) if (decision := decide(n)) is not None]
    return bool(decisions) and decisions[-1]


def _level(rule: RuleData, name: str, samples: list[Sample], at: int) -> bool:
    limit, band = rule["limits"][name]["at"], rule.get("hysteresis", 0)
    sign = 1 if "high" in name else -1
    sides: list[tuple[int, bool]] = []
    for sample in samples:
        over = sign * (sample.value - limit)
        if over > 0 or over <= -band:
            sides.append((sample.at, over > 0))
    active = False
    for n, (_, inside) in enumerate(sides):
        if n and sides[n - 1][1] is inside:
            continue
        following = [time for time, side in sides[n:] if side is not inside]
        delay = rule.get("on_delay_seconds" if inside else "off_delay_seconds", 0) * SECOND
        if sides[n][0] + delay <= (following[0] if following else at):
            active = inside
    return active


def _is_stale(rule: RuleData, samples: list[Sample], moment: Moment, begin: int, start: int) -> bool:
    if rule["tag"] == "*" and not samples:
        return False
    since = samples[-1].at if samples else begin
    if start >= 0:
        since = max(since, moment.lines[start].at)
    return bool(moment.at >= since + rule["seconds"] * SECOND)


def _deviates(rule: RuleData, samples: list[Sample], n: int) -> bool | None:
    sample = samples[n]
    window = [
        Fraction(item.value)
        for item in samples[:n]
        if sample.at - rule["window_seconds"] * SECOND < item.at < sample.at
    ]
    if len(window) < max(2, rule["min_samples"]):
        return None
    mean = sum(window) / len(window)
    variance = sum((fraction - mean) ** 2 for fraction in window) / (len(window) - 1)
    if variance == 0:
        return None
    return bool((sample.value - mean) ** 2 > Fraction(rule["sigma"]) ** 2 * variance)


def _condition(rule: RuleData, samples: list[Sample]) -> bool | None:
    values = {tag: next((sample.value for sample in reversed(samples) if sample.tag == tag), None) for tag in "ab"}
    # A condition is looked at when one of its tags has a sample.
    if samples[-1].tag not in rule["when"].replace("and", "").replace("or", ""):
        return None
    return CONDITIONS[rule["when"]](values["a"], values["b"])


def _pattern(rule: RuleData, values: list[Any]) -> bool | None:
    mean, sigma, points = rule.get("mean"), rule.get("sigma"), values
    if mean is None or sigma is None:
        learn = rule["learn"]
        if len(values) <= learn:
            return None
        first, points = values[:learn], values[learn:]
        mean = sum(first) / learn
        sigma = sum(abs(b - a) for a, b in pairwise(first)) / (learn - 1) / 1.128
    if sigma == 0:
        return None
    z = [(value - mean) / sigma for value in points]
    return any(_nelson(number, z, points) for number in rule.get("nelson", range(1, 9)))


def _nelson(number: int, z: list[float], x: list[Any]) -> bool:
    length = {1: 1, 2: 9, 3: 6, 4: 14, 5: 3, 6: 5, 7: 15, 8: 8}[number]
    if len(z) < length:
        return False
    z, x = z[-length:], x[-length:]
    up = [x[n + 1] > x[n] for n in range(length - 1)]
    down = [x[n + 1] < x[n] for n in range(length - 1)]
    match number:
        case 1:
            return not -3 <= z[0] <= 3
        case 2:
            return min(z) > 0 or max(z) < 0
        case 3:
            return False not in up or False not in down
        case 4:
            return all((up[n] and down[n + 1]) or (down[n] and up[n + 1]) for n in range(length - 2))
        case 5:
            return len([score for score in z if score > 2]) >= 2 or len([score for score in z if score < -2]) >= 2
        case 6:
            return len([score for score in z if score > 1]) >= 4 or len([score for score in z if score < -1]) >= 4
        case 7:
            return max(z) <= 1 and min(z) >= -1
        case _:
            return not any(-1 <= score <= 1 for score in z) and min(z) < 0 < max(z)


def _fires(rule: RuleData, subject: str, moment: Moment) -> bool:
    line = moment.lines[-1]
    if rule["kind"] == "occurs":
        # The moment after the end of a job is not another occurrence.
        pattern = rule["pattern"]
        return isinstance(line, Occurrence) and (pattern in {"*", line.name}) and subject == (line.job or pattern)
    samples = _samples(rule, subject, moment)
    if not samples or samples[-1][0] != len(moment.lines) - 1:
        return False
    value = samples[-1][1].value
    running = _running(moment)
    if not running:
        return len(samples) > 1 and not _same(samples[-2][1].value, value)
    earlier = [
        sample.value
        for number, sample in samples[:-1]
        if number > running[-1][1] and _running(Moment(sample.at, moment.lines[: number + 1]))[-1] == running[-1]
    ]
    return not any(_same(item, value) for item in earlier)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)
