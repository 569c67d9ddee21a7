"""Examines the Work Masters that are stored: for the answer to the MES, and for the alarm about those with faults."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import structlog
from msgspec import Struct

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.app.recipe_process import RecipeProcess
from edge.features.recipes.desk import Ask, Desk
from edge.features.recipes.examination import ExaminedRecipe, examine_apart
from edge.features.recipes.revisions import recipe_hash
from edge.features.recipes.settings import RecipesSettings
from edge.features.recipes.workbench_requests import EncodedAnswer, LongRequest, Request
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.model.isa95 import WorkMaster
from edge.model.recipe import is_recipe_schema
from edge.station.settings import follow_settings
from edge.store import resources
from edge.store.background import restart_on_outage
from edge.store.client import Store

logger = structlog.get_logger(__name__)
_T = TypeVar("_T", bound=Struct)
_WORKBENCH: Final = "edge.features.recipes.workbench"

Examine: TypeAlias = Callable[[Sequence[Any]], Awaitable[list[ExaminedRecipe]]]


async def open_recipes(stack: AsyncExitStack, core: GatewayParts, works: Works) -> Opened:
    """Examine the recipes that are stored and that the MES sends, until the stack closes."""
    refuses = core.settings.section(RecipesSettings).refuse_faulty
    examiner = partial(examine_work_masters, refuses=refuses)
    works.settings.examiners.append(examiner)
    stack.callback(works.settings.examiners.remove, examiner)

    def count(faulty: int) -> None:
        core.health.faulty_recipes = faulty

    watch = RecipeWatch(core.store, core.scopes, count)
    follow = partial(follow_settings, core.store, [watch.look])
    await core.keep_running(stack, "recipes", partial(restart_on_outage, "recipes", follow))
    edits, long = RecipeProcess(_WORKBENCH), RecipeProcess(_WORKBENCH)
    for program in (edits, long):
        stack.push_async_callback(program.close)
    return Opened(port=Desk(core.store, core.settings, ask_apart(edits, long), findings=watch.findings))


def ask_apart(edits: RecipeProcess, long: RecipeProcess) -> Ask:
    """Return what asks the workbench in processes of its own: the gateway does not load the check of recipes.

    `long` answers what may take long: checks, past jobs, trials, tests, charts of two recipes. No edit waits for it.
    """

    async def ask(request: Request, answer: type[_T]) -> _T:
        process = long if isinstance(request, LongRequest) else edits
        found = msgspec.json.decode(await process.ask(msgspec.json.encode(request)), type=EncodedAnswer)
        if (refusal := found.refusal) is not None:
            raise Refused(refusal.kind, refusal.reason, refusal.advice)
        return msgspec.json.decode(found.value, type=answer)

    return ask


async def examine_work_masters(
    masters: Sequence[WorkMaster], *, refuses: bool, examine: Examine = examine_apart
) -> tuple[str, ...]:
    """Return what is found in the recipes of Work Masters; raises Refused for faults where they are refused.

    Without the process that examines nothing is found: the alarm follows as soon as it runs again.
    """
    with_recipe = [master for master in masters if is_recipe_schema(master.dataschema)]
    if not with_recipe:
        return ()
    try:
        results = await examine([master.data for master in with_recipe])
    except (OSError, Unavailable) as error:
        logger.warning("recipes not examined", reason=str(error))
        return ()
    named = list(zip(with_recipe, results, strict=True))
    faults = [f"{master.id}: {text}" for master, result in named for text in result.faults]
    if faults and refuses:
        raise Refused("recipe", "; ".join(faults), "Correct the recipe; `edge check recipe` finds the same faults.")
    return (*faults, *(f"{master.id}: {text}" for master, result in named for text in result.warnings))


class RecipeWatch:
    """Counts the stored recipes with faults whenever the settings of a scope change; each content is examined once."""

    def __init__(
        self,
        store: Store,
        scopes: Sequence[str],
        count: Callable[[int], object],
        examine: Examine = examine_apart,
    ) -> None:
        self._store = store
        self._scopes = scopes
        self._count = count
        self._examine = examine
        self._examined: dict[str, Mapping[bytes, ExaminedRecipe]] = {}
        """The results by scope and content."""
        self._by_hash: dict[str, dict[str, ExaminedRecipe]] = {}

    def findings(self, recipe_hash: str) -> Sequence[Text]:
        """Return the faults and warnings of a stored recipe by its hash; none of one that is not stored any more."""
        found = (results[recipe_hash] for results in self._by_hash.values() if recipe_hash in results)
        return next(found, ExaminedRecipe()).messages

    async def look(self, scope: str) -> None:
        """Examine the recipes of a scope; of all scopes without one."""
        for name in self._scopes:
            if scope in {"", name}:
                await self._look_at(name)
        results = (result for of_scope in self._examined.values() for result in of_scope.values())
        self._count(sum(bool(result.faults) for result in results))

    async def _look_at(self, scope: str) -> None:
        masters = await resources.load_work_masters(self._store, scope)
        contents = {
            msgspec.json.encode(master.data): master for master in masters if is_recipe_schema(master.dataschema)
        }
        known = {text: result for text, result in self._examined.get(scope, {}).items() if text in contents}
        fresh = {text: master for text, master in contents.items() if text not in known}
        if fresh:
            try:
                results = await self._examine([master.data for master in fresh.values()])
            except (OSError, Unavailable) as error:
                logger.warning("recipes not examined", scope=scope, reason=str(error))
                results = []
            known |= dict(zip(fresh, results, strict=False))
            for master, result in zip(fresh.values(), results, strict=False):
                for text in (*result.faults, *result.warnings):
                    logger.warning("recipe", scope=scope, work_master=master.id, finding=text)
        self._examined[scope] = known
        self._by_hash[scope] = {recipe_hash(master): known[text] for text, master in contents.items() if text in known}
