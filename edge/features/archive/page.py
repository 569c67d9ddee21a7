"""The archive on the station page and in the HTTP API: search, one result, two side by side, analysis, export."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, PageData, PagePart, PageServices, Streamed, Svg
from edge.drawing.gantt import gantt_lines
from edge.drawing.marks import marks_of
from edge.drawing.reading import read_chart
from edge.drawing.sheet import draw
from edge.drawing.svg import chart_svg
from edge.features.archive.analysis import Analysis, analyse
from edge.features.archive.comparison import ArchivedResult, differences
from edge.features.archive.export import MEDIA_TYPES, ExportFormat, write_jobs
from edge.features.archive.pictures import pareto_svg, steps_svg
from edge.features.archive.record import (
    CODE,
    EQUIPMENT,
    OUTCOME,
    PARAMETER,
    PERSON,
    SCOPE,
    VERDICT,
    VIOLATION,
    WORK_MASTER,
    term_of,
)
from edge.features.archive.search import (
    MOST_FOUND,
    ArchivedDetail,
    ArchivedJob,
    ArchivePage,
    Search,
    all_jobs,
    find_jobs,
    instant,
    load_archived,
)
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text, labels
from edge.foundation.ticks import REST_S, in_slices
from edge.model.instant import Instant, rfc3339
from edge.model.json_value import plain_value
from edge.model.user import Role
from edge.ports.result_trace import TraceReference, stored_in
from edge.sfc.replay import timeline
from edge.sfc.titles import step_title
from edge.sfc.verdict import OK
from edge.station.public_history import PublicHistory, public_history
from edge.station.public_result import attempts_of, public_results
from edge.station.stored_job import NotRecorded
from edge.store.dedupe import load_removal

if TYPE_CHECKING:
    from edge.features.archive.service import Archive

_PAGE_SIZE: Final = 25
_MOST_RESULTS: Final = 100
_LARGEST: Final = 65_536
_DAY_MS: Final = 86_400_000
PERIODS: Final = (1, 7, 30, 90, 366)
"""The periods that the page offers, in days."""
_TERMS: Final = {
    "work_master": WORK_MASTER,
    "scope": SCOPE,
    "equipment": EQUIPMENT,
    "person": PERSON,
    "code": CODE,
    "outcome": OUTCOME,
    "verdict": VERDICT,
    "violation": VIOLATION,
}
_QUERY: Final = {
    "text": "An identifier or its beginning: a VIN, a job order, a scanned code, any parameter of the order.",
    "parameter": "A parameter of the order, as NAME=VALUE.",
    "work_master": "A Work Master.",
    "scope": "A scope.",
    "equipment": "Equipment that was asked for, or used.",
    "person": "Who worked on the job, or decided about it.",
    "code": "A scanned code.",
    "outcome": "`completed`, `failed`, `stopped` or `aborted`.",
    "verdict": "The verdict of the recipe: `ok`, `not_ok`, or its text.",
    "violation": "A failure or a violated limit, as `torque high`, or the action that it is of.",
    "since": "The first instant of the end, RFC 3339.",
    "until": "The last instant of the end, RFC 3339.",
}
_T = TypeVar("_T")


def _file(services: PageServices) -> Path:
    archive: Archive | None = services.ports.get("archive")
    if archive is None:
        raise Refused("archive_off", "this gateway has no archive.", "Set [archive] directory.")
    return archive.file


async def _reading(services: PageServices, read: Callable[[Path], _T]) -> _T:
    """Return what is read of the archive in a thread: the disk holds up no job."""
    return await asyncio.to_thread(read, _file(services))


def search_of(query: Mapping[str, str]) -> Search:
    """Return what a query searches for. Raises Refused for a parameter or an instant in a wrong form."""
    terms = [term_of(name, text) for key, name in _TERMS.items() if (text := query.get(key, "").strip())]
    if given := query.get("parameter", ""):
        name, equals, value = given.partition("=")
        if not (name and equals and value):
            raise Refused("invalid_query", Text.of("{given!r} is not NAME=VALUE.", given=given), "As in vin=WVW1.")
        terms.append(term_of(PARAMETER + name, value))
    return Search(
        text=query.get("text", ""),
        terms=tuple(terms),
        since=instant(query.get("since", ""), 0),
        until=instant(query.get("until", ""), Search().until),
        after=query.get("after", ""),
    )


async def _find(services: PageServices, call: ApiCall) -> ArchivePage:
    search = search_of(call.query)
    return await _reading(services, lambda file: find_jobs(file, search, MOST_FOUND, call.caller.language))


async def _analysis(services: PageServices, call: ApiCall) -> Analysis:
    return await _analysed(services, search_of(call.query), call.caller.language)


async def _pareto(services: PageServices, call: ApiCall) -> Svg:
    texts = labels(call.caller.language)
    return Svg(pareto_svg(texts["why_not_ok"], (await _analysis(services, call)).reasons, texts["all_ok"]))


async def _analysed(services: PageServices, search: Search, language: str) -> Analysis:
    return await _reading(services, lambda file: analyse(file, search, language))


async def _steps(services: PageServices, call: ApiCall) -> Svg:
    texts, analysis = labels(call.caller.language), await _analysis(services, call)
    return Svg(steps_svg(texts["step_times"], analysis.steps, analysis.work_master, texts["no_steps"]))


async def _export(services: PageServices, call: ApiCall) -> Streamed:
    search, file = search_of(call.query), _file(services)
    try:
        form = ExportFormat(call.query.get("format", "") or ExportFormat.CSV)
    except ValueError:
        raise Refused("invalid_query", "the format is not known.", "It is csv, json or jsonl.") from None
    columns = [name for name in call.query.get("columns", "").split(",") if name]
    jobs = all_jobs(file, search, language=call.caller.language)
    return Streamed(write_jobs(jobs, form, columns), f"results.{form.value}", MEDIA_TYPES[form])


async def _detail(services: PageServices, id_: str, language: str = ENGLISH) -> ArchivedDetail:
    return await _reading(services, lambda file: load_archived(file, id_, language))


async def _result(services: PageServices, call: ApiCall) -> ArchivedResult:
    language = call.caller.language
    return result_of(await _detail(services, call.path["result"], language), language)


def result_of(detail: ArchivedDetail, language: str) -> ArchivedResult:
    """Return a job of the archive for a reader of a language."""
    job, recorded = detail.stored.job, detail.recorded
    history = PublicHistory(job_order_id=job.job_id, scope=job.scope, decisions=())
    if not isinstance(recorded, NotRecorded):
        history = public_history(recorded, _LARGEST, language)
    parameters = {parameter.id: plain_value(parameter.value) for parameter in job.order.job_order_parameters or ()}
    return ArchivedResult(
        job=detail.line,
        recipe_revision=job.recipe.revision or None,
        recipe_hash=job.recipe.hash or None,
        has_chart=detail.stored.run is not None,
        parameters=parameters,
        results=public_results(detail.stored, _MOST_RESULTS, _LARGEST, language),
        history=history,
    )


async def _chart(services: PageServices, call: ApiCall) -> Svg:
    stored = (await _detail(services, call.path["result"])).stored
    if stored.run is None or stored.net is None:
        raise Refused("no_chart", "the job was never started.", "It has no chart.")
    marks = marks_of(stored.net, stored.run, stored.run.ended_at or 0)
    await asyncio.sleep(REST_S)  # each part takes a millisecond or more: the others run between them
    drawing = draw(read_chart(stored.net.recipe), "", marks, call.caller.language)
    await asyncio.sleep(REST_S)
    return Svg(chart_svg(drawing))


async def _gantt(services: PageServices, call: ApiCall) -> Svg:
    recorded = (await _detail(services, call.path["result"])).recorded
    if isinstance(recorded, NotRecorded):
        raise Refused("no_history", Text.of("{reason}.", reason=recorded.reason), "Look at its results.")
    until = recorded.stored.run.ended_at or 0
    lines = gantt_lines("", recorded.net, timeline(recorded.records), until, call.caller.language)
    return Svg("".join(await in_slices(lines, REST_S)))


async def _curve(services: PageServices, call: ApiCall) -> Svg:
    traces = services.ports.get("traces")
    if traces is None:
        raise Refused("unknown_trace", "this gateway stores no traces.", "Set [traces] directory.")
    stored, number = (await _detail(services, call.path["result"])).stored, call.path["channel"]
    for attempt in attempts_of(stored):
        for reference in stored_in(attempt.result):
            if isinstance(reference, TraceReference) and reference.sha256 == call.path["trace"]:
                return Svg(await traces.draw_curve(reference, number))
    raise Refused("unknown_trace", "the job has no such trace.", "Look at its results.")


async def _results_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    if "archive" not in services.ports:
        return "results.html", {"page": None, "subjects": []}
    days, search = _period(services, query)
    page = await _reading(services, lambda file: find_jobs(file, search, _PAGE_SIZE, caller.language))
    given = {key: query.get(key, "") for key in _QUERY if key not in {"since", "until"}}
    return "results.html", {
        "page": page,
        "rows": [(job, _title(job), _partner(job, page.jobs)) for job in page.jobs],
        "given": given,
        "days": days,
        "periods": PERIODS,
        "outcomes": ("completed", "failed", "stopped", "aborted"),
        "since": rfc3339(search.since),
        "subjects": [],
    }


def _period(services: PageServices, query: Mapping[str, str]) -> tuple[int, Search]:
    """Return the days that a page looks back, and what it searches for."""
    text = query.get("days", "")
    days = int(text) if text in {str(period) for period in PERIODS} else PERIODS[2]
    return days, replace(search_of(query), since=services.clock() - days * _DAY_MS)


async def _why_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    days, search = _period(services, query)
    given = {key: query.get(key, "") for key in _QUERY if key not in {"since", "until"}}
    return "results-why.html", {
        "analysis": await _analysed(services, search, caller.language),
        "given": given,
        "days": days,
        "periods": PERIODS,
        "subjects": [],
    }


def _partner(job: ArchivedJob, jobs: Sequence[ArchivedJob]) -> ArchivedJob | None:
    """Return the job to compare with: another one of the same Work Master, one that is OK if there is one."""
    others = [other for other in jobs if other.work_master == job.work_master and other.id != job.id]
    return next((other for other in others if other.verdict == OK), next(iter(others), None))


def _title(job: ArchivedJob) -> str:
    """Return what was worked on, such as a VIN, else the JobOrderID."""
    return job.identifier or job.job_order_id


async def _result_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    ids = [query.get("id", ""), *filter(None, [query.get("with", "")])]
    details = [await _detail(services, id_, caller.language) for id_ in ids]
    results = [result_of(detail, caller.language) for detail in details]
    difference = _difference(details)
    return "result.html", {
        "results": results,
        "difference": difference,
        "recipes": " / ".join(map(_recipe_of, results)),
        "steps": () if difference == _OTHER_RECIPE else _compared(results, details[0], caller.language),
        "differences": differences(results, caller.language) if len(results) > 1 else (),
        "removals": [await _removal(services, result.job) for result in results],
        "subjects": [],
    }


_OTHER_RECIPE: Final = "compare_other_recipe"
_OTHER_REVISION: Final = "compare_other_revision"


def _difference(details: Sequence[ArchivedDetail]) -> str:
    """Return the label that says why results are not comparable; empty for those of one recipe."""
    if len({detail.line.work_master for detail in details}) > 1:
        return _OTHER_RECIPE
    recipes = [detail.stored.net.recipe for detail in details if detail.stored.net is not None]
    return _OTHER_REVISION if any(recipe != recipes[0] for recipe in recipes) else ""


def _recipe_of(result: ArchivedResult) -> str:
    parts = (result.job.work_master, str(result.recipe_revision or ""), f"({result.recipe_hash or '–'})")
    return " ".join(filter(None, parts))


async def _removal(services: PageServices, job: ArchivedJob) -> Instant | None:
    """Return when a job was removed from the list of jobs; None while it is there, and long after its removal."""
    removed_at = await load_removal(services.store, job.job_order_id)
    return None if removed_at is None else rfc3339(removed_at)


def _compared(
    results: list[ArchivedResult], first: ArchivedDetail, language: str
) -> list[tuple[str, list[int | None]]]:
    """Return each step of the jobs with the time that it took in each of them, in milliseconds."""
    names = dict.fromkeys(name for result in results for name in result.job.step_ms)
    net = first.stored.net
    titles = {name: step_title(net, name, (language,)) if net else name for name in names}
    return [(titles[name], [result.job.step_ms.get(name) for result in results]) for name in names]


_RESULT: Final = "/results/{result}"
PAGE: Final = PagePart(
    (
        ApiOperation(
            "GET",
            "/results",
            "Find ended jobs of the archive, the newest first.",
            Role.OBSERVER,
            ArchivePage,
            _find,
            query={**_QUERY, "after": "The `next` of the page before."},
        ),
        ApiOperation(
            "GET",
            "/results-analysis",
            "Return why jobs are not OK and how long their steps take, of the newest 5,000 that are found.",
            Role.OBSERVER,
            Analysis,
            _analysis,
            query=_QUERY,
        ),
        ApiOperation(
            "GET", "/results-pareto.svg", "Return why jobs are not OK.", Role.OBSERVER, Svg, _pareto, query=_QUERY
        ),
        ApiOperation(
            "GET",
            "/results-steps.svg",
            "Return how long steps take: median, middle half, 5 to 95 %.",
            Role.OBSERVER,
            Svg,
            _steps,
            query=_QUERY,
        ),
        ApiOperation(
            "GET",
            "/results-export",
            "Export ended jobs as a stream.",
            Role.OBSERVER,
            Streamed,
            _export,
            query={
                **_QUERY,
                "format": "`csv`, `json` or `jsonl`.",
                "columns": "Parameters that are columns of the CSV, separated by commas.",
            },
        ),
        ApiOperation(
            "GET",
            _RESULT,
            "Return an archived job, by the id of its response, or the last one of a JobOrderID.",
            Role.OBSERVER,
            ArchivedResult,
            _result,
        ),
        ApiOperation(
            "GET", f"{_RESULT}/chart.svg", "Return the chart of the recipe as it ran.", Role.OBSERVER, Svg, _chart
        ),
        ApiOperation("GET", f"{_RESULT}/gantt.svg", "Return the timeline.", Role.OBSERVER, Svg, _gantt),
        ApiOperation(
            "GET",
            f"{_RESULT}/traces/{{trace}}/{{channel}}/curve.svg",
            "Return a curve of an archived job; the first is 0.",
            Role.OBSERVER,
            Svg,
            _curve,
        ),
    ),
    pages={"/results": _results_page, "/results-why": _why_page, "/result": _result_page},
    links={"/results": "results"},
    manual=dict.fromkeys(("/results", "/results-why", "/result"), "how-to/results#on-the-station-page"),
    templates=Path(__file__).parent / "templates",
)
