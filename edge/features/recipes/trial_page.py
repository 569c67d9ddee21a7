"""The page on which a draft or a revision is tried by hand, and its operations: try, tests, replay."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, Execute, PageData, PageServices, Render, Svg
from edge.features.recipes.api_models import TrialBody
from edge.features.recipes.past_decisions import DraftReplay
from edge.features.recipes.past_jobs import MOST_REPLAYED
from edge.features.recipes.recipe_tests import load_tests
from edge.features.recipes.sources import RecipeSource, desk_of, of_draft, of_page, of_revision
from edge.features.recipes.trial import Trial
from edge.features.recipes.workbench_requests import DrawActive, DrawnChart, RecipeTestReport, TryText
from edge.foundation.errors import Refused
from edge.model.user import Role

TRY: Final = "/recipe-try"
_Find: TypeAlias = Callable[[PageServices, ApiCall], Awaitable[RecipeSource]]
_MOST_ACTIVE: Final = 1000


async def _page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    source = await of_page(services, query)
    tests = await load_tests(services.store, source.work_master)
    return "recipe-try.html", {"source": source, "tests": tests, "subjects": []}


TRIAL_PAGES: Final[Mapping[str, Render]] = {TRY: _page}
"""The pages by their address."""


def _try(find: _Find) -> Execute:
    async def execute(services: PageServices, call: ApiCall) -> Trial:
        source, body = await find(services, call), call.body
        return await desk_of(services).ask(TryText(source.text, body.replies, call.caller.language), Trial)

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
            TrialBody,
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
