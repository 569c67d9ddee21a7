"""The page on which a draft or a revision is tried by hand, and its operations: try, tests, replay."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, Execute, PageData, PageServices, Render, Svg
from edge.features.recipes.desk import Desk
from edge.features.recipes.past_decisions import DraftReplay
from edge.features.recipes.past_jobs import MOST_REPLAYED
from edge.features.recipes.recipe_tests import load_tests
from edge.features.recipes.sources import RecipeSource, desk_of, of_draft, of_page, of_revision
from edge.features.recipes.trial import PersonAct, Trial, TrialDecisions
from edge.features.recipes.workbench_requests import DrawActive, DrawnChart, RecipeTestReport, TryText
from edge.foundation.errors import Refused
from edge.foundation.text import labels
from edge.model.user import Role
from edge.station.start import merged_parameters

TRY: Final = "/recipe-try"
_Find: TypeAlias = Callable[[PageServices, ApiCall], Awaitable[RecipeSource]]
_MOST_ACTIVE: Final = 1000


async def _page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    source = await of_page(services, query)
    tests = await load_tests(services.store, source.work_master)
    label = labels(caller.language)
    return "recipe-try.html", {
        "source": source,
        "tests": tests,
        "acts": {kind: label[key] for kind, key in _ACTS.items()},
        "parameters": await _parameters(desk_of(services), source),
        "subjects": [],
    }


async def _parameters(desk: Desk, source: RecipeSource) -> Mapping[str, Any]:
    """Return the parameters of the Work Master: a job has them where its order names no others."""
    revision = source.revision
    master = revision.work_master if revision else await desk.work_master(source.scope, source.work_master)
    return merged_parameters(master.parameters) if master else {}


_ACTS: Final[Mapping[PersonAct, str]] = {
    "retry": "intervene.retry",
    "skip": "intervene.skip",
    "force": "intervene.force",
    "complete": "intervene.complete",
    "abort": "abort",
    "resolve done": "recipe.resolve_done",
    "resolve failed": "recipe.resolve_failed",
    "resolve repeat": "recipe.resolve_repeat",
}
"""The labels of what a person does, by their keys."""


TRIAL_PAGES: Final[Mapping[str, Render]] = {TRY: _page}
"""The pages by their address."""


def _try(find: _Find) -> Execute:
    async def execute(services: PageServices, call: ApiCall) -> Trial:
        source = await find(services, call)
        return await desk_of(services).ask(TryText(source.text, call.body, call.caller.language), Trial)

    return execute


def _tests(find: _Find) -> Execute:
    async def execute(services: PageServices, call: ApiCall) -> RecipeTestReport:
        source = await find(services, call)
        return await desk_of(services).test(source.work_master, source.text, call.caller.language)

    return execute


def _replay(find: _Find) -> Execute:
    async def execute(services: PageServices, call: ApiCall) -> DraftReplay:
        source, after = await find(services, call), call.query.get("after", "")
        desk = desk_of(services)
        return await desk.replay(source.scope, source.work_master, source.text, call.caller.language, after)

    return execute


def _active_chart(find: _Find) -> Execute:
    async def execute(services: PageServices, call: ApiCall) -> Svg:
        source = await find(services, call)
        try:
            active = msgspec.json.decode(call.query.get("steps", "") or "[]", type=tuple[str, ...])
        except msgspec.DecodeError:
            raise Refused("invalid_query", "steps is not a list of names.", 'As in ["Tighten"].') from None
        chart = await desk_of(services).ask(DrawActive(source.text, active[:_MOST_ACTIVE]), DrawnChart)
        return Svg(chart.svg)

    return execute


def _operations(at: str, what: str, find: _Find) -> tuple[ApiOperation, ...]:
    return (
        ApiOperation(
            "POST",
            f"{at}/try",
            f"Return what happens in {what} in virtual time, up to the first command or event without a decision.",
            Role.ENGINEER,
            Trial,
            _try(find),
            TrialDecisions,
            changes=False,
        ),
        ApiOperation(
            "GET",
            f"{at}/active.svg",
            f"Return the chart of {what} with some steps marked as active.",
            Role.ENGINEER,
            Svg,
            _active_chart(find),
            query={"steps": "The names of the steps as a JSON list."},
        ),
        ApiOperation(
            "GET",
            f"{at}/tests",
            f"Run the tests of its Work Master with {what}.",
            Role.ENGINEER,
            RecipeTestReport,
            _tests(find),
        ),
        ApiOperation(
            "GET",
            f"{at}/replay",
            f"Return what the newest {MOST_REPLAYED} jobs would have done with {what}, in parts.",
            Role.ENGINEER,
            DraftReplay,
            _replay(find),
            query={"after": "The `next` of the answer before; without it the newest job comes first."},
        ),
    )


TRIAL_OPERATIONS: Final = (
    *_operations("/recipe-drafts/{draft}", "a draft", of_draft),
    *_operations("/recipes/{scope}/{recipe}/revisions/{revision}", "a revision", of_revision),
)
"""The operations about drafts and revisions alike."""
