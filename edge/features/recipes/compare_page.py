"""The page on which a draft and a revision, or two revisions, are compared: one chart, and a list in words."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, PageData, PageServices, Render, Svg
from edge.features.recipes.api_models import public_revision
from edge.features.recipes.desk import Desk
from edge.features.recipes.revisions import RevisionLine, load_revisions
from edge.features.recipes.sources import RecipeSource, desk_of, number_of, of_draft, of_page
from edge.features.recipes.workbench_requests import DrawComparison, DrawnChart, RecipeComparison, text_of
from edge.foundation.errors import Refused
from edge.model.user import Role

COMPARE: Final = "/recipe-compare"
_SIGNS: Final = {"added": "+", "removed": "−", "changed": "~"}


class ChangeLine(Struct, frozen=True):
    """A difference in words; `sign` and `kind` mark it as in the chart."""

    kind: str
    sign: str
    text: str


async def _page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    draft = query.get("draft", "")
    if draft:
        caller.require(Role.ENGINEER)
    source = await of_page(services, query if draft else {**query, "revision": query.get("new", "")})
    revisions = await load_revisions(services.store, source.scope, source.work_master)
    old = _chosen(source, revisions, number_of(query.get("old", "")))
    return "recipe-compare.html", {
        "source": source,
        "revisions": [public_revision(revision) for revision in revisions],
        "old": old,
        "is_engineer": caller.role >= Role.ENGINEER,
        "subjects": [],
        **await _compared(services, caller, source, old),
    }


def _chosen(source: RecipeSource, revisions: Sequence[RevisionLine], wanted: int | None) -> int | None:
    """Return the revision to compare with: the one that is wanted, else that of the begin, else the one before."""
    if wanted is not None:
        return wanted
    if source.draft is not None:
        return source.draft.base or None
    number = source.revision.number if source.revision else 0
    return next((revision.number for revision in revisions if revision.number < number), None)


async def _compared(
    services: PageServices, caller: WebCaller, source: RecipeSource, old: int | None
) -> Mapping[str, Any]:
    if old is None:
        return {"lines": (), "problem": "", "has_other": False}
    desk = desk_of(services)
    try:
        text = await _text(desk, source, old)
        found = await desk.compare(text, source.text, caller.language)
    except Refused as refused:
        return {"lines": (), "problem": refused.text.in_language(caller.language), "has_other": False}
    return {"lines": _lines(found), "problem": "", "has_other": True}


def _lines(found: RecipeComparison) -> list[ChangeLine]:
    items = zip(found.differences, found.words, strict=True)
    return [ChangeLine(item.kind.value, _SIGNS[item.kind.value], text) for item, text in items]


async def _text(desk: Desk, source: RecipeSource, number: int | None) -> str:
    return text_of((await desk.revision(source.scope, source.work_master, number)).work_master.data)


async def _drawn(services: PageServices, call: ApiCall, source: RecipeSource, old: str) -> Svg:
    desk = desk_of(services)
    request = DrawComparison(await _text(desk, source, number_of(old)), source.text, call.caller.language)
    chart = await desk.ask(request, DrawnChart)
    if not chart.svg:
        raise Refused("no_chart", "the recipe cannot be drawn.", "Check it: its faults say why.")
    return Svg(chart.svg)


async def _draft_chart(services: PageServices, call: ApiCall) -> Svg:
    source = await of_draft(services, call)
    base = str(source.draft.base) if source.draft else ""
    return await _drawn(services, call, source, call.query.get("revision", "") or base)


async def _revision_chart(services: PageServices, call: ApiCall) -> Svg:
    wanted = {"scope": call.path["scope"], "id": call.path["recipe"], "revision": call.query.get("new", "")}
    return await _drawn(services, call, await of_page(services, wanted), call.query.get("old", ""))


COMPARE_PAGES: Final[Mapping[str, Render]] = {COMPARE: _page}
"""The pages by their address."""
COMPARE_OPERATIONS: Final = (
    ApiOperation(
        "GET",
        "/recipe-drafts/{draft}/difference.svg",
        "Return one chart of a draft and a revision, with what was added, removed and changed marked.",
        Role.ENGINEER,
        Svg,
        _draft_chart,
        query={"revision": "The number of the revision, or `released`; without it that of its begin."},
    ),
    ApiOperation(
        "GET",
        "/recipes/{scope}/{recipe}/difference.svg",
        "Return one chart of two revisions, with what was added, removed and changed marked.",
        Role.OBSERVER,
        Svg,
        _revision_chart,
        query={
            "old": "The number of a revision; without it the released one.",
            "new": "The number of another one; without it the released one.",
        },
    ),
)
"""The operations that draw comparisons."""
