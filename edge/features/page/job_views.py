"""Reads jobs for the API and the pages: lists, progress, what a job waits for, its results, chart and history."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from edge.drawing.gantt import gantt_lines
from edge.drawing.marks import marks_of
from edge.drawing.reading import read_chart
from edge.drawing.sheet import draw
from edge.drawing.svg import chart_svg
from edge.features.page.models import JobPage, ResultList
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.foundation.text import ENGLISH, Text
from edge.foundation.ticks import REST_S, in_slices
from edge.model.equipment_connection import NOT_CONNECTED
from edge.model.job_identifier import identifier_of
from edge.model.job_state import TEXT, JobState, has_ended
from edge.sfc.replay import timeline
from edge.station.public_history import PublicHistory, public_history
from edge.station.public_job import PublicJobDetail, public_detail, public_job
from edge.station.public_result import public_results
from edge.station.stored_job import NotRecorded, StoredJob, load, load_recorded
from edge.store import jobs
from edge.store.client import Store
from edge.store.jobs import Job, JobRank

_ORDER: Final = (
    JobState.RUNNING,
    JobState.INTERRUPTED,
    JobState.ALLOWED_TO_START,
    JobState.NOT_ALLOWED_TO_START,
    JobState.ABORTED,
    JobState.ENDED,
)
STATES: Final = tuple(TEXT[state] for state in _ORDER)
"""The states in the order in which lists show them."""

MOST_DECISIONS: Final = 500
"""Decisions of a job that are read at a time: a job that repeats its steps may have made thousands."""
MOST_RESULTS: Final = 200
_LARGEST_RESULT: Final = 65_536
"""In bytes of JSON; the size of a larger one stands for it."""

_LARGEST_SIGNAL: Final = 4096
"""In bytes of JSON; the size of a larger one stands for it."""


async def list_jobs(
    store: Store,
    scopes: Iterable[str],
    states: Sequence[str],
    text: str,
    most: int,
    skip: int = 0,
    language: str = ENGLISH,
) -> JobPage:
    """Return jobs in some states, after the first `skip`; no state stands for all of them.

    Their id or what they work on, such as a VIN, contains a text. Their errors are in a language.
    """
    ids = [identifier for scope in scopes for identifier in await jobs.list_ids(store, scope)]
    if text:
        ids = await _with_text(store, ids, text.casefold())
    # Ids come by priority: sorting keeps that order among jobs that wait.
    ranks = await jobs.load_ranks(store, ids)
    job_ranks = sorted((rank for rank in ranks if not states or TEXT[rank.state] in states), key=_place)
    shown = await jobs.load_some(store, [job_rank.job_id for job_rank in job_ranks[skip : skip + most]])
    shown.sort(key=_rank)
    return JobPage(jobs=tuple(public_job(job, language) for job in shown), total=len(job_ranks))


async def _with_text(store: Store, ids: Sequence[str], needle: str) -> list[str]:
    """Return the ids of the jobs whose id or identifier contains a text in lower case, in their order."""
    orders = await jobs.find_orders(store, [id for id in ids if needle not in id.casefold()], needle)
    named = {order.job_order_id for order in orders if needle in identifier_of(order).casefold()}
    return [id for id in ids if id in named or needle in id.casefold()]


def _place(job_rank: JobRank) -> tuple[int, int]:
    return _ORDER.index(job_rank.state), -job_rank.ended_at


def _rank(job: Job) -> tuple[int, int, int]:
    """Sort by state; jobs that wait by priority and age, jobs that have ended by their end, the last one first."""
    place = _ORDER.index(job.status.state)
    if has_ended(job.status):
        return place, 0, -(job.ended_at or 0)
    return place, -(job.order.priority or 0), job.stored_at


async def job_detail(services: WebServices, job_id: str, languages: Sequence[str]) -> PublicJobDetail:
    """Return a job with its progress, in the languages of a reader. Raises Refused for an unknown one."""
    stored_job = await load(services.store, job_id, services.jobs_clock)
    return detail_of(services, stored_job, languages)


def detail_of(services: WebServices, stored: StoredJob, languages: Sequence[str]) -> PublicJobDetail:
    """Return a job with its progress, and what its equipment has, in the languages of a reader."""
    obstacles = {
        health.name: NOT_CONNECTED if health.connected is False else health.problem for health in services.equipment()
    }
    return public_detail(stored, services.jobs_clock(), languages, services.equipment_by_type, obstacles)


async def job_results(store: Store, job_id: str, language: str) -> ResultList:
    """Return the results of a job, with errors in a language. Raises Refused for an unknown one."""
    return results_of(await load(store, job_id), language)


def results_of(stored: StoredJob, language: str, most: int = MOST_RESULTS) -> ResultList:
    """Return the results of a job, the newest ones when there are many, with errors in a language."""
    return ResultList(job_order_id=stored.job.job_id, results=public_results(stored, most, _LARGEST_RESULT, language))


async def job_chart(store: Store, job_id: str, clock: Clock, language: str) -> str:
    """Return the running chart of a job as SVG in a language, at the present instant of the clock of the jobs.

    Raises Refused for an unknown job and for one without a run.
    """
    stored_job = await load(store, job_id, clock)
    if not (stored_job.run and stored_job.net):
        raise Refused(
            "no_chart", Text.of("job {job_id!r} has not started.", job_id=job_id), "It has a chart once it was started."
        )
    marks = marks_of(stored_job.net, stored_job.run, clock(), stored_job.holders, stored_job.mirrors, stored_job.unsent)
    chart = read_chart(stored_job.net.recipe)
    await asyncio.sleep(REST_S)  # each part takes a millisecond or more: the others run between them
    drawing = draw(chart, "", marks, language)
    await asyncio.sleep(REST_S)
    return chart_svg(drawing)


async def job_gantt(store: Store, job_id: str, now: int, language: str) -> str:
    """Return the timeline of steps and actions as SVG in a language. Raises Refused when no history is recorded."""
    found = await load_recorded(store, job_id, MOST_DECISIONS, REST_S)
    if isinstance(found, NotRecorded):
        raise Refused("no_history", Text.of("{reason}.", reason=found.reason), "Look at the list of jobs.")
    run = found.stored.run
    until = now if run.ended_at is None else run.ended_at
    lines = gantt_lines("", found.net, timeline(found.records), until, language)
    return "".join(await in_slices(lines, REST_S))


async def job_history(store: Store, job_id: str, language: str, most: int = MOST_DECISIONS) -> PublicHistory:
    """Return the newest decisions about a job, with texts in a language. Raises Refused when none is recorded."""
    found = await load_recorded(store, job_id, most, REST_S)
    if isinstance(found, NotRecorded):
        raise Refused("no_history", Text.of("{reason}.", reason=found.reason), "Look at the list of jobs.")
    return public_history(found, _LARGEST_SIGNAL, language)
