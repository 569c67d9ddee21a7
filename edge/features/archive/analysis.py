"""What many jobs have in common: why they are not OK, and how long their steps take."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from edge.features.archive.search import ArchivedJob, Search, all_jobs
from edge.foundation.text import ENGLISH

MOST_ANALYSED: Final = 5000
"""The newest jobs that an analysis looks at."""
_MOST_REASONS: Final = 12
_MOST_STEPS: Final = 40


class ReasonCount(Struct, frozen=True, kw_only=True):
    """A reason why jobs are not OK, and how many of them have it; `share` is that of all that have one, up to here.

    A search for `violation`, the reason in English, finds them.
    """

    reason: str
    violation: str
    jobs: int
    share: float


class StepQuantiles(Struct, frozen=True, kw_only=True):
    """How long a step was active, in milliseconds: its median, the middle half, and 5 to 95 % of the jobs.

    `title` is in the language of the caller.
    """

    step: str
    title: str
    jobs: int
    p5: int
    p25: int
    p50: int
    p75: int
    p95: int


class Analysis(Struct, frozen=True, kw_only=True):
    """The reasons and the steps of jobs, the most frequent reasons first; at most the newest 5,000 are looked at.

    `ok` is how many have the verdict `ok`. Steps are those of one Work Master: that of the search, else the newest.
    """

    jobs: int
    ok: int
    reasons: tuple[ReasonCount, ...]
    work_master: str
    steps: tuple[StepQuantiles, ...]


def analyse(file: Path, search: Search, language: str = ENGLISH) -> Analysis:
    """Return what the newest jobs that meet a search have in common, with reasons in a language.

    Raises Refused and ArchiveFault.
    """
    return analysis_of(list(islice(all_jobs(file, search, language=language), MOST_ANALYSED)))


def analysis_of(jobs: Sequence[ArchivedJob]) -> Analysis:
    """Return what jobs have in common; the first one is the newest."""
    work_master = jobs[0].work_master if jobs else ""
    return Analysis(
        jobs=len(jobs),
        ok=sum(job.verdict == "ok" for job in jobs),
        reasons=tuple(_reasons(jobs)),
        work_master=work_master,
        steps=_steps(job for job in jobs if job.work_master == work_master),
    )


def _reasons(jobs: Sequence[ArchivedJob]) -> Iterable[ReasonCount]:
    violations = {
        reason: violation for job in jobs for reason, violation in zip(job.reasons, job.violations, strict=True)
    }
    counts = Counter(reason for job in jobs for reason in job.reasons)
    total, passed = counts.total(), 0
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS]:
        passed += count
        yield ReasonCount(reason=reason, violation=violations[reason], jobs=count, share=round(passed / total, 4))


def _steps(jobs: Iterable[ArchivedJob]) -> tuple[StepQuantiles, ...]:
    times: dict[str, list[int]] = defaultdict(list)
    titles: dict[str, str] = {}
    for job in jobs:
        titles = {**job.step_titles, **titles}
        for step, ms in job.step_ms.items():
            times[step].append(ms)
    listed = list(times.items())[:_MOST_STEPS]
    return tuple(_times(step, titles.get(step, step), sorted(values)) for step, values in listed)


def _times(step: str, title: str, values: Sequence[int]) -> StepQuantiles:
    p5, p25, p50, p75, p95 = (_quantile(values, part) for part in (0.05, 0.25, 0.5, 0.75, 0.95))
    return StepQuantiles(step=step, title=title, jobs=len(values), p5=p5, p25=p25, p50=p50, p75=p75, p95=p95)


def _quantile(values: Sequence[int], part: float) -> int:
    """Return a quantile of sorted values, by linear interpolation."""
    position = part * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return round(values[below] + (values[above] - values[below]) * (position - below))
