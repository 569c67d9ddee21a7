"""The pages on which a draft is released, and on which a recipe has its history and is rolled back; its files."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, Download, PageData, PageServices, Render
from edge.features.recipes.api_models import public_draft, public_revision
from edge.features.recipes.finding import FindingLevel
from edge.features.recipes.revisions import load_released_mark, load_revisions
from edge.features.recipes.sources import RecipeSource, desk_of, of_draft, of_revision
from edge.features.recipes.workbench_requests import ExportText, RecipeFile
from edge.model.user import Role

RELEASE: Final = "/recipe-release"
HISTORY: Final = "/recipe-history"
_XML: Final = "application/xml"


class ReleaseTest(Struct, frozen=True):
    """A result of a test for the page."""

    id: str
    is_passed: bool
    reasons: tuple[str, ...]


async def _release(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    desk = desk_of(services)
    draft = await desk.draft(query.get("draft", ""))
    source = RecipeSource(draft.scope, draft.work_master, await desk.text(draft), draft=draft)
    check = await desk.check(draft, caller.language)
    results = () if check.problems else (await desk.test(draft.work_master, source.text, caller.language)).results
    mark = await load_released_mark(services.store, draft.scope, draft.work_master)
    revisions = await load_revisions(services.store, draft.scope, draft.work_master)
    faults = [item for item in check.findings if item.level == FindingLevel.FAULT]
    is_sound = not check.problems and not faults and all(result.is_passed for result in results)
    return "recipe-release.html", {
        "source": source,
        "draft": public_draft(draft),
        "problems": check.problems,
        "faults": faults,
        "warnings": [item for item in check.findings if item.level == FindingLevel.WARNING],
        "information": [item for item in check.findings if item.level == FindingLevel.INFORMATION],
        "notes": check.warnings,
        "tests": [ReleaseTest(result.id, result.is_passed, result.reasons) for result in results],
        "released": public_revision(revisions[0]) if revisions else None,
        "is_behind": mark.number != draft.base,
        "is_sound": is_sound,
        "needs_second": desk.bounds.second_person,
        "reader": caller.user,
        "next": mark.number + 1,
        "subjects": ["recipes"],
    }


async def _history(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    desk = desk_of(services)
    scope, work_master = query.get("scope", ""), query.get("id", "")
    desk.require_scope(scope)
    revisions = await load_revisions(services.store, scope, work_master)
    if not revisions:
        await desk.revision(scope, work_master)
    drafts = [
        public_draft(draft)
        for draft in await desk.drafts()
        if (draft.scope, draft.work_master) == (scope, work_master) and caller.role >= Role.ENGINEER
    ]
    return "recipe-history.html", {
        "source": RecipeSource(scope, work_master, ""),
        "revisions": [public_revision(revision) for revision in revisions],
        "drafts": drafts,
        "needs_second": desk.bounds.second_person,
        "is_engineer": caller.role >= Role.ENGINEER,
        "subjects": ["recipes"],
    }


async def _about_recipe(services: PageServices, _: WebCaller, query: Mapping[str, str]) -> PageData:
    """Return what the page of a recipe leads to."""
    scope, work_master = query.get("scope", ""), query.get("id", "")
    number = (await load_released_mark(services.store, scope, work_master)).number
    return "recipe-links.html", {"scope": scope, "id": work_master, "revision": number}


async def _about_recipes(services: PageServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    """Return where files of PLC tools are dropped."""
    desk = desk_of(services)
    return "recipe-import.html", {"is_engineer": caller.role >= Role.ENGINEER, "scopes": desk.settings.gateway.scopes}


RELEASE_PAGES: Final[Mapping[str, Render]] = {RELEASE: _release, HISTORY: _history}
"""The pages by their address."""
PERSONAL_PAGES: Final = frozenset({RELEASE})
"""The page shows the requester that another person confirms, and offers that to the others."""
RELEASE_ADDITIONS: Final[Mapping[str, Render]] = {"/recipe": _about_recipe, "/recipes": _about_recipes}
"""What the pages of recipes have in addition."""


async def _export_draft(services: PageServices, call: ApiCall) -> Download:
    return await _exported(services, await of_draft(services, call))


async def _export_revision(services: PageServices, call: ApiCall) -> Download:
    return await _exported(services, await of_revision(services, call))


async def _exported(services: PageServices, source: RecipeSource) -> Download:
    created = datetime.fromtimestamp(services.clock() // 1000, UTC).replace(tzinfo=None).isoformat()
    request = ExportText(source.text, source.work_master, created)
    file = await desk_of(services).ask(request, RecipeFile)
    # Only characters that a header can have.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", source.work_master).strip("-.") or "recipe"
    return Download(file.content.encode(), f"{name}.xml", _XML)


RELEASE_OPERATIONS: Final = (
    ApiOperation(
        "GET",
        "/recipes/{scope}/{recipe}/revisions/{revision}/plcopen.xml",
        "Return a revision as a chart of PLCopen TC6 XML 2.01.",
        Role.OBSERVER,
        Download,
        _export_revision,
    ),
    ApiOperation(
        "GET",
        "/recipe-drafts/{draft}/plcopen.xml",
        "Return a draft as a chart of PLCopen TC6 XML 2.01.",
        Role.ENGINEER,
        Download,
        _export_draft,
    ),
)
"""The operations about files."""
