"""Subjects of rules: to which tag, joining process, job, carrier or tool a sample or an occurrence belongs."""

from collections.abc import Mapping
from typing import assert_never

from edge.features.telemetry.model.rule import ExpressionRule, OccursRule, Rule
from edge.ports.sample_lines import Occurrence, Sample


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
