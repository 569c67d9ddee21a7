"""Subjects of rules: to which tag, process, job, carrier or tool a sample or an occurrence belongs; running jobs."""

from collections.abc import Mapping
from typing import assert_never

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import ControlChartRule, ExpressionRule, OccursRule, Rule, Span
from edge.ports.sample_lines import Occurrence, Sample
from edge.ports.tag import matches


class RunningJobs(msgspec.Struct, frozen=True):
    """Running jobs; `since` is the start of the first one since last no job ran. `spans` began and have not ended."""

    ids: tuple[str, ...] = ()
    since: int | None = None
    spans: tuple[tuple[Span, int], ...] = ()
    """Each with its beginning."""

    @property
    def current(self) -> str | None:
        """Return the job to which samples belong: the one started last that still runs."""
        return self.ids[-1] if self.ids else None

    def start(self, job: str, at: int) -> "RunningJobs":
        """Return the jobs after a start; a job that runs already stays in its place."""
        if job in self.ids:
            return self
        return replace(self, ids=(*self.ids, job), since=at if self.since is None else self.since)

    def of_sample(self, job: str | None) -> "RunningJobs":
        """Return the jobs for a sample that names its job: that one is the current one; none when it has ended."""
        if job is None:
            return self
        if job not in self.ids:
            return replace(self, ids=(), since=None)
        return (
            self
            if self.current == job
            else replace(self, ids=(*(identifier for identifier in self.ids if identifier != job), job))
        )

    def end(self, job: str) -> "RunningJobs":
        """Return the jobs after an end."""
        ids = tuple(identifier for identifier in self.ids if identifier != job)
        return replace(self, ids=ids, since=self.since if ids else None)

    def begin_span(self, span: Span, at: int) -> "RunningJobs":
        """Return the spans after a beginning; one that has begun already continues."""
        return self if span in dict(self.spans) else replace(self, spans=(*self.spans, (span, at)))

    def end_span(self, span: Span) -> "RunningJobs":
        """Return the spans after an end."""
        return replace(self, spans=tuple(row for row in self.spans if row[0] != span))

    def open_since(self, rule: Rule) -> int | None:
        """Return since when a rule with `while` counts; None when it does not count now."""
        return dict(self.spans).get(rule.while_) if isinstance(rule.while_, Span) else self.since


def subject_kind(rule: Rule) -> str:
    """Return what has a state of its own."""
    return "tag" if isinstance(rule, ExpressionRule) else rule.subject


def subject_of_sample(rule: Rule, sample: Sample, job: str | None) -> str:
    """Return the subject of a rule to which a sample belongs; without a process, job or carrier it is the tag.

    What a gateway measured itself has its name in the subject: each gateway of a store has its own alarms.
    """
    gateway = "" if sample.gateway is None else f"[{sample.gateway}]"
    if isinstance(rule, ExpressionRule):
        return f"{rule.id}{gateway}"
    tag = f"{sample.tag}{gateway}"
    match rule.subject:
        case "tag":
            return tag
        case "tool":
            return f"{sample.tag.partition('.')[0]}{gateway}"
        case "process":
            part = sample.process
        case "carrier":
            part = sample.carrier
        case "job":
            part = job
        case _:
            assert_never(rule.subject)
    return tag if part is None else f"{tag}[{part}]"


def may_concern(rule: ControlChartRule, subject: str, tag: str) -> bool:
    """Return whether samples of a tag may belong to a subject of a rule, of whichever gateway, process or job."""
    name = tag.partition(".")[0] if rule.subject == "tool" else tag
    return subject == tag or (matches(rule.tag, tag) and (subject == name or subject.startswith(f"{name}[")))


def subject_of_occurrence(rule: OccursRule, given: Occurrence) -> str:
    """Return the job, carrier or tool of an occurrence; without one it is the pattern."""
    data = given.data if isinstance(given.data, Mapping) else {}
    match rule.subject:
        case "job":
            part: object = given.job
        case "carrier":
            part = data.get("carrier", data.get("member"))
        case "tool":
            part = data.get("tool")
        case _:
            assert_never(rule.subject)
    return part if isinstance(part, str) and part else rule.pattern


def name_in_subject(rule: Rule, subject: str) -> str:
    """Return the text that the `*` in the tag of a rule matches, with what follows the tag in round brackets.

    For `equipment.*.connected` and `equipment.wrench.connected[press-2]` it is `wrench (press-2)`; for a tag without
    `*`, or with several, it is the subject.
    """
    tag = "" if isinstance(rule, ExpressionRule | OccursRule) else rule.tag
    before, star, after = tag.partition("*")
    end = subject.rfind(after) if after else len(subject)
    if not star or "*" in after or not subject.startswith(before) or end <= len(before):
        return subject
    further = subject[end + len(after) :].removeprefix("[").removesuffix("]").replace("][", ", ")
    return subject[len(before) : end] + (f" ({further})" if further else "")


def ends_with_job(rule: Rule, subject: str, job: str) -> bool:
    """Return whether a subject of a rule ends with a job."""
    has_jobs = not isinstance(rule, ExpressionRule | OccursRule) and rule.subject == "job"
    return has_jobs and subject.endswith(f"[{job}]")
