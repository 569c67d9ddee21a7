"""Compares archived jobs: what differs between them, in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from edge.drawing.marks import duration
from edge.features.archive.search import ArchivedJob
from edge.foundation.text import labels, stated_in
from edge.model.result_violations import quantity_name
from edge.station.public_history import PublicHistory
from edge.station.public_result import PublicResult, ResultValue


class ArchivedResult(Struct, frozen=True, kw_only=True):
    """A job of the archive with the results of all its attempts and its decisions.

    `recipe_revision` is the revision of the Work Master that it ran, `recipe_hash` names its recipe.
    """

    job: ArchivedJob
    recipe_revision: int | None
    recipe_hash: str | None
    has_chart: bool
    parameters: Mapping[str, Any]
    results: tuple[PublicResult, ...]
    history: PublicHistory


def differences(results: Sequence[ArchivedResult], language: str) -> list[tuple[str, list[str]]]:
    """Return what differs between jobs: a name, and the text of each of them, empty where it has none."""
    facts = [dict(_facts(result, language)) for result in results]
    names = dict.fromkeys(name for fact in facts for name in fact)
    rows = [(name, [fact.get(name, "") for fact in facts]) for name in names]
    return [(name, texts) for name, texts in rows if len(set(texts)) > 1]


def _facts(result: ArchivedResult, language: str) -> Iterator[tuple[str, str]]:
    """Yield what a person compares, the verdict first; of each action its last attempt."""
    words, job = labels(language), result.job
    verdict = words.get(f"verdict.{job.verdict}", job.verdict)
    yield words["verdict_short"], ", ".join(filter(None, (verdict, words[f"outcome.{job.outcome}"])))
    yield words["why"], "; ".join(job.reasons)
    if job.took_ms is not None:
        yield words["took"], duration(job.took_ms)
    yield from ((name, str(value)) for name, value in result.parameters.items())
    for last in {(item.step, item.action): item for item in result.results}.values():
        name = last.title if last.title == last.step_title else f"{last.step_title} – {last.title}"
        yield name, _outcome(last, language)


def _outcome(result: PublicResult, language: str) -> str:
    words = labels(language)
    tries = f"{words['attempt']} {result.attempt}" if result.attempt > 1 else ""
    values = [_value(value, language) for value in result.values if not value.name.startswith("violations.")]
    texts = (result.answer, *result.causes, result.error, *values, result.by)
    return ", ".join(filter(None, (words[f"action.{result.state}"], tries, *texts)))


def _value(value: ResultValue, language: str) -> str:
    match value.value:
        case bool():
            shown = labels(language)["yes" if value.value else "no"]
        case float():
            shown = f"{value.value:.5g}"
        case _:
            shown = str(value.value)
    return f"{stated_in(quantity_name(value.name), language)} {shown} {value.unit}".rstrip()
