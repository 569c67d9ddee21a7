"""Revisions and drafts of recipes in the HTTP API: read, change, undo, check, compare, release, roll back."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.app.features import settings_kinds
from edge.app.page_part import ApiCall, ApiOperation, Execute, PagePart, PageServices, Svg
from edge.features.recipes import api_models as models
from edge.features.recipes.api_models import public_draft, public_revision
from edge.features.recipes.compare_page import COMPARE_OPERATIONS, COMPARE_PAGES
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.drafts import RecipeDraft
from edge.features.recipes.editor_page import EDITOR_OPERATIONS, EDITOR_PAGES
from edge.features.recipes.past_decisions import ConditionValues, OfferedNames
from edge.features.recipes.past_jobs import MOST_SHOWN
from edge.features.recipes.recipe_tests import RecipeTest, load_tests
from edge.features.recipes.release import Release, confirm_release, release_draft, roll_back
from edge.features.recipes.release_page import PERSONAL_PAGES, RELEASE_ADDITIONS, RELEASE_OPERATIONS, RELEASE_PAGES
from edge.features.recipes.revisions import load_released, load_revisions
from edge.features.recipes.sources import desk_of, number_of
from edge.features.recipes.trial_page import TRIAL_OPERATIONS, TRIAL_PAGES
from edge.features.recipes.workbench_requests import (
    DraftCheck,
    DraftView,
    RecipeComparison,
    ViewText,
    text_of,
)
from edge.foundation.errors import Refused
from edge.model.recipe import is_recipe_schema
from edge.model.user import Role
from edge.station.settings import SettingsMethod, SettingSource, StationSettings
from edge.store.resources import load_work_masters


def author_of(call: ApiCall) -> Author:
    """Return the sender of a request."""
    return Author(call.caller.user, call.caller.language, call.id)


async def _recipes(services: PageServices, _: ApiCall) -> models.ReleasedRecipeList:
    desk = desk_of(services)
    drafts = models.drafts_by_recipe({draft.id: draft for draft in await desk.drafts()})
    lines = []
    for scope in desk.settings.gateway.scopes:
        stored = await load_work_masters(services.store, scope)
        masters = [master for master in stored if is_recipe_schema(master.dataschema)]
        released = await load_released(services.store, scope, [master.id for master in masters])
        lines += [
            models.ReleasedRecipe(
                scope=scope,
                work_master=master.id,
                description=master.description.text or "" if master.description else "",
                revision=public_revision(revision) if revision else None,
                drafts=drafts.get((scope, master.id), ()),
            )
            for master, revision in zip(masters, released, strict=True)
        ]
    return models.ReleasedRecipeList(recipes=tuple(lines))


async def _revisions(services: PageServices, call: ApiCall) -> models.RevisionList:
    scope, work_master = call.path["scope"], call.path["recipe"]
    desk_of(services).require_scope(scope)
    revisions = await load_revisions(services.store, scope, work_master)
    return models.RevisionList(scope=scope, work_master=work_master, revisions=tuple(map(public_revision, revisions)))


async def _revision(services: PageServices, call: ApiCall) -> models.RevisionDetail:
    scope, work_master = call.path["scope"], call.path["recipe"]
    desk = desk_of(services)
    desk.require_scope(scope)
    revision = await desk.revision(scope, work_master, number_of(call.path["revision"]))
    return models.RevisionDetail(
        scope=scope, work_master=work_master, revision=public_revision(revision), recipe=revision.work_master.data
    )


async def _revision_text(services: PageServices, call: ApiCall, number: int | None) -> str:
    scope, work_master = call.path["scope"], call.path["recipe"]
    desk = desk_of(services)
    desk.require_scope(scope)
    return text_of((await desk.revision(scope, work_master, number)).work_master.data)


async def _revision_chart(services: PageServices, call: ApiCall) -> Svg:
    text = await _revision_text(services, call, number_of(call.path["revision"]))
    return _drawn(await desk_of(services).ask(ViewText(text), DraftView))


def _drawn(view: DraftView) -> Svg:
    if not view.chart:
        raise Refused("no_chart", "the recipe cannot be drawn.", "Check it: its faults say why.")
    return Svg(view.chart)


async def _difference(services: PageServices, call: ApiCall) -> RecipeComparison:
    old = await _revision_text(services, call, number_of(call.query.get("old", "")))
    new = await _revision_text(services, call, number_of(call.query.get("new", "")))
    return await desk_of(services).compare(old, new, call.caller.language)


async def _rollback(services: PageServices, call: ApiCall) -> models.ReleaseResult:
    body: models.RollbackBody = call.body
    scope, work_master = call.path["scope"], call.path["recipe"]

    async def write() -> Release:
        return await roll_back(
            desk_of(services), scope, work_master, body.revision, body.reason, author_of(call), SettingSource.PAGE
        )

    return await _released(services, call, "recipes rollback", f"{scope}/{work_master}", body.reason, write)


async def _drafts(services: PageServices, _: ApiCall) -> models.PublicDraftList:
    desk = desk_of(services)
    drafts = tuple(map(public_draft, await desk.drafts()))
    return models.PublicDraftList(drafts=drafts, second_person=desk.bounds.second_person)


async def _create(services: PageServices, call: ApiCall) -> models.DraftDetail:
    body: models.NewDraft = call.body
    desk = desk_of(services)

    async def begin() -> tuple[RecipeDraft, DraftView]:
        # A file of a PLC tool has its warnings once: it becomes a recipe.
        read = await desk.read(body.text, call.caller.language, body.pou) if body.text is not None else None
        text = read.text if read else None
        draft = await desk.create(body.scope, body.work_master, author_of(call), text, body.revision)
        view = await desk.view(draft, call.caller.language)
        return draft, replace(view, warnings=read.warnings) if read else view

    return await _changed(services, call, "recipes draft", f"{body.scope}/{body.work_master}", begin)


async def _draft(services: PageServices, call: ApiCall) -> models.DraftDetail:
    desk = desk_of(services)
    draft = await desk.draft(call.path["draft"])
    return draft_detail(draft, await desk.view(draft, call.caller.language))


def draft_detail(draft: RecipeDraft, view: DraftView) -> models.DraftDetail:
    """Return a draft with its text, faults and chart."""
    return models.DraftDetail(
        draft=public_draft(draft),
        text=view.text,
        recipe=view.recipe,
        problems=view.problems,
        warnings=view.warnings,
        chart=view.chart,
    )


async def _changed(
    services: PageServices,
    call: ApiCall,
    action: str,
    subject: str,
    change: Callable[[], Awaitable[tuple[RecipeDraft, DraftView]]],
) -> models.DraftDetail:
    """Execute and record a change of a draft."""
    try:
        draft, view = await change()
    except Refused as refusal:
        services.audit.called(call.caller, action, subject, "", refusal.message)
        raise
    services.audit.called(call.caller, action, subject, f"version {draft.current}")
    services.notify("recipes")
    return draft_detail(draft, view)


def _change(
    action: str, change: Callable[[Desk, str, ApiCall, Author], Awaitable[tuple[RecipeDraft, DraftView]]]
) -> Execute:
    """Return the operation that changes a draft."""

    async def execute(services: PageServices, call: ApiCall) -> models.DraftDetail:
        draft_id = call.path["draft"]
        return await _changed(
            services, call, action, draft_id, lambda: change(desk_of(services), draft_id, call, author_of(call))
        )

    return execute


async def _edit(desk: Desk, draft_id: str, call: ApiCall, by: Author) -> tuple[RecipeDraft, DraftView]:
    return await desk.edit(draft_id, call.body.version, call.body.change, by, call.body.seen)


async def _write(desk: Desk, draft_id: str, call: ApiCall, by: Author) -> tuple[RecipeDraft, DraftView]:
    return await desk.write(draft_id, call.body.version, call.body.text, by)


async def _undo(desk: Desk, draft_id: str, call: ApiCall, by: Author) -> tuple[RecipeDraft, DraftView]:
    return await desk.step(draft_id, call.body.version, by, back=True)


async def _redo(desk: Desk, draft_id: str, call: ApiCall, by: Author) -> tuple[RecipeDraft, DraftView]:
    return await desk.step(draft_id, call.body.version, by, back=False)


async def _rebase(desk: Desk, draft_id: str, call: ApiCall, by: Author) -> tuple[RecipeDraft, DraftView]:
    draft = await desk.rebase(draft_id, call.body.version, call.body.revision, by)
    return draft, await desk.view(draft, by.language)


async def _discard(desk: Desk, draft_id: str, call: ApiCall, by: Author) -> tuple[RecipeDraft, DraftView]:
    draft = await desk.draft(draft_id)
    view = await desk.view(draft, by.language)
    return await desk.discard(draft_id, call.body.version, by), view


async def _check(services: PageServices, call: ApiCall) -> DraftCheck:
    desk = desk_of(services)
    return await desk.check(await desk.draft(call.path["draft"]), call.caller.language)


async def _tests(services: PageServices, call: ApiCall) -> models.RecipeTestList:
    tests = await load_tests(services.store, call.query.get("work_master", ""))
    return models.RecipeTestList(tests=tuple(tests))


def _change_test(method: SettingsMethod) -> Execute:
    """Return the operation that stores or deletes a test."""

    async def execute(services: PageServices, call: ApiCall) -> models.RecipeTestList:
        body = msgspec.to_builtins(call.body)
        settings = StationSettings(services.store, settings_kinds())
        action = f"recipes test {method.value.lower()}"
        try:
            await settings.apply("", "recipetest", method, [body])
        except Refused as refusal:
            services.audit.called(call.caller, action, body["id"], "", refusal.message)
            raise
        services.audit.called(call.caller, action, body["id"], "")
        services.notify("recipes")
        tests = await load_tests(services.store, body.get("work_master", ""))
        return models.RecipeTestList(tests=tuple(tests))

    return execute


async def _condition(services: PageServices, call: ApiCall) -> ConditionValues:
    body: models.ConditionBody = call.body
    desk = desk_of(services)
    return await desk.condition(await desk.draft(call.path["draft"]), body.condition, body.step)


async def _names(services: PageServices, call: ApiCall) -> OfferedNames:
    desk = desk_of(services)
    return await desk.names(await desk.draft(call.path["draft"]))


async def _draft_chart(services: PageServices, call: ApiCall) -> Svg:
    desk = desk_of(services)
    text = await desk.text(await desk.draft(call.path["draft"]), number_of(call.query.get("version", "")))
    return _drawn(await desk.ask(ViewText(text), DraftView))


async def _draft_difference(services: PageServices, call: ApiCall) -> RecipeComparison:
    desk = desk_of(services)
    draft = await desk.draft(call.path["draft"])
    new = await desk.text(draft)
    if version := number_of(call.query.get("version", "")):
        old = await desk.text(draft, version)
    else:
        wanted = call.query.get("revision", "") or str(draft.base)
        old = text_of((await desk.revision(draft.scope, draft.work_master, number_of(wanted))).work_master.data)
    return await desk.compare(old, new, call.caller.language)


async def _release(services: PageServices, call: ApiCall) -> models.ReleaseResult:
    body: models.DraftRelease = call.body
    draft_id = call.path["draft"]

    async def write() -> Release:
        return await release_draft(
            desk_of(services), draft_id, body.version, body.reason, author_of(call), SettingSource.PAGE
        )

    return await _released(services, call, "recipes release", draft_id, body.reason, write)


async def _confirm(services: PageServices, call: ApiCall) -> models.ReleaseResult:
    draft_id = call.path["draft"]

    async def write() -> Release:
        return await confirm_release(
            desk_of(services), draft_id, call.body.version, author_of(call), SettingSource.PAGE
        )

    return await _released(services, call, "recipes confirm", draft_id, "", write)


async def _released(
    services: PageServices,
    call: ApiCall,
    action: str,
    subject: str,
    reason: str,
    write: Callable[[], Awaitable[Release]],
) -> models.ReleaseResult:
    """Execute and record a release."""
    try:
        done = await write()
    except Refused as refusal:
        services.audit.called(call.caller, action, subject, reason, refusal.message)
        raise
    services.audit.called(call.caller, action, subject, reason)
    services.notify("recipes")
    return models.ReleaseResult(
        revision=public_revision(done.revision) if done.revision else None,
        draft=public_draft(done.draft) if done.draft else None,
    )


_RECIPE: Final = "/recipes/{scope}/{recipe}"
_REVISION: Final = f"{_RECIPE}/revisions/{{revision}}"
_DRAFT: Final = "/recipe-drafts/{draft}"


def _read(path: str, summary: str, answer: type[Struct], execute: Execute, **query: str) -> ApiOperation:
    return ApiOperation("GET", path, summary, Role.OBSERVER, answer, execute, query=query)


def _work(path: str, summary: str, answer: type[Struct], execute: Execute, body: type[Struct]) -> ApiOperation:
    return ApiOperation("POST", path, summary, Role.ENGINEER, answer, execute, body)


def _look(path: str, summary: str, answer: type[Struct], execute: Execute, **query: str) -> ApiOperation:
    return ApiOperation("GET", path, summary, Role.ENGINEER, answer, execute, query=query)


PAGE: Final = PagePart(
    (
        _read("/recipe-revisions", "List the recipes with what is released.", models.ReleasedRecipeList, _recipes),
        _read(f"{_RECIPE}/revisions", "List the revisions of a recipe.", models.RevisionList, _revisions),
        _read(_REVISION, "Return a revision, or the one that is `released`.", models.RevisionDetail, _revision),
        _read(f"{_REVISION}/chart.svg", "Return the chart of a revision.", Svg, _revision_chart),
        _read(
            f"{_RECIPE}/difference",
            "Return the differences of two revisions.",
            RecipeComparison,
            _difference,
            old="The number of a revision; without it the released one.",
            new="The number of another one; without it the released one.",
        ),
        _work(
            f"{_RECIPE}/rollback",
            "Release an earlier revision again, as a new one; running jobs stay on theirs.",
            models.ReleaseResult,
            _rollback,
            models.RollbackBody,
        ),
        _look("/recipe-drafts", "List the drafts of recipes.", models.PublicDraftList, _drafts),
        _work("/recipe-drafts", "Begin a draft of a recipe.", models.DraftDetail, _create, models.NewDraft),
        _look(_DRAFT, "Return a draft with its text, faults and chart.", models.DraftDetail, _draft),
        _look(f"{_DRAFT}/check", "Return what forbids the release of a draft, and warnings.", DraftCheck, _check),
        _look(
            f"{_DRAFT}/chart.svg",
            "Return the chart of a draft.",
            Svg,
            _draft_chart,
            version="A version of the draft; without it the current one.",
        ),
        _look(
            f"{_DRAFT}/difference",
            "Return what a draft changes.",
            RecipeComparison,
            _draft_difference,
            revision="Compare with this revision, or the one that is `released`; without it that of its begin.",
            version="Compare with this version of the draft, in place of a revision.",
        ),
        ApiOperation(
            "POST",
            f"{_DRAFT}/condition",
            f"Return the value that a condition had in the newest {MOST_SHOWN} jobs.",
            Role.ENGINEER,
            ConditionValues,
            _condition,
            models.ConditionBody,
            changes=False,
        ),
        _look(f"{_DRAFT}/names", "Return the names that conditions of a draft may have.", OfferedNames, _names),
        _read(
            "/recipe-tests",
            "List the tests of recipes.",
            models.RecipeTestList,
            _tests,
            work_master="Only those of this Work Master.",
        ),
        _work(
            "/recipe-tests",
            "Store a test in the place of one with its id.",
            models.RecipeTestList,
            _change_test(SettingsMethod.PUT),
            RecipeTest,
        ),
        _work(
            "/recipe-tests/delete",
            "Delete a test.",
            models.RecipeTestList,
            _change_test(SettingsMethod.DELETE),
            models.RecipeTestName,
        ),
        *(
            _work(f"{_DRAFT}/{name}", summary, models.DraftDetail, _change(f"recipes {name}", change), body)
            for name, summary, change, body in (
                ("change", "Apply a change to a draft.", _edit, models.DraftChange),
                ("text", "Replace the text of a draft; it may have faults.", _write, models.DraftText),
                ("undo", "Undo the last change of a draft.", _undo, models.DraftSeen),
                ("redo", "Redo the change that was undone last.", _redo, models.DraftSeen),
                (
                    "rebase",
                    "Set the released revision as the one that the draft was compared with.",
                    _rebase,
                    models.DraftBase,
                ),
                ("discard", "Remove a draft with its history.", _discard, models.DraftSeen),
            )
        ),
        _work(
            f"{_DRAFT}/release",
            "Release a draft as the next revision; where two persons release, ask the other one.",
            models.ReleaseResult,
            _release,
            models.DraftRelease,
        ),
        _work(
            f"{_DRAFT}/confirm",
            "Confirm a release that another person has asked for.",
            models.ReleaseResult,
            _confirm,
            models.DraftSeen,
        ),
        *EDITOR_OPERATIONS,
        *RELEASE_OPERATIONS,
        *TRIAL_OPERATIONS,
        *COMPARE_OPERATIONS,
    ),
    pages={**EDITOR_PAGES, **RELEASE_PAGES, **TRIAL_PAGES, **COMPARE_PAGES},
    personal=PERSONAL_PAGES,
    templates=Path(__file__).parent / "templates",
    static=Path(__file__).parent / "static",
    additions=RELEASE_ADDITIONS,
    manual=dict.fromkeys(EDITOR_PAGES, "how-to/edit-a-recipe")
    | {
        "/recipe-try": "how-to/test-a-recipe#by-hand-on-the-station-page",
        "/recipe-compare": "how-to/release-a-recipe#on-the-station-page",
        "/recipe-release": "how-to/release-a-recipe#on-the-station-page",
        "/recipe-history": "how-to/release-a-recipe#look-at-the-history",
    },
)
"""The operations about revisions and drafts."""
