"""Reads the facts for a job method call in one round trip; the guards of its commit detect later changes."""

import asyncio
from typing import TypeVar

from msgspec import Struct

from edge.model.acceptance import Allowed
from edge.model.isa95 import JobOrder
from edge.station.recipe_lookup import FoundRecipe, NoRecipe, RecipeLookup
from edge.store import dedupe, jobs, resources, undelivered
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.jobs import Job

_Value = TypeVar("_Value")


class CallIdentity(Struct, frozen=True):
    """The identity of a call, under which its answer is stored: source and id of its event, and its transaction."""

    source: str
    event_id: str
    scope: str
    transaction: str | None


class OrderFacts(Struct, frozen=True):
    """What Store, StoreAndStart and Update depend on.

    `removed_at` is when a job of this id was removed; `undelivered` counts the jobs that stay beyond their time.
    """

    before: Job | None
    removed_at: int | None
    allowed: Allowed
    open_jobs: int
    undelivered: int
    recipe: FoundRecipe | NoRecipe | None

    @property
    def guard(self) -> Commit:
        """Return the guard that the recipe is unchanged."""
        return self.recipe.guard if isinstance(self.recipe, FoundRecipe) else Commit()


async def read_given(store: Store, identity: CallIdentity) -> str | None:
    """Return the stored answer to a call; None when it is new."""
    if identity.transaction is None:
        return await dedupe.load_answer(store, identity.source, identity.event_id)
    event, transaction = (identity.source, identity.event_id), (identity.scope, identity.transaction)
    return await dedupe.load_either_answer(store, event, transaction)


async def read_order_facts(
    store: Store, identity: CallIdentity, order: JobOrder, recipes: RecipeLookup | None
) -> str | OrderFacts:
    """Return the stored answer to a call with an order, else the facts for its plan."""
    scope, job_id = identity.scope, order.job_order_id
    given, before, removed_at, allowed, counts, recipe = await asyncio.gather(
        read_given(store, identity),
        jobs.load(store, job_id),
        dedupe.removed_at(store, job_id),
        resources.load_allowed(store, scope),
        asyncio.gather(jobs.count_open(store, scope), undelivered.count(store, scope)),
        _find_recipe(recipes, scope, order),
        return_exceptions=True,
    )
    if (answer := _valid(given)) is not None:
        return answer
    open_jobs, waiting = _valid(counts)
    return OrderFacts(_valid(before), _valid(removed_at), _valid(allowed), open_jobs, waiting, _valid(recipe))


async def _find_recipe(recipes: RecipeLookup | None, scope: str, order: JobOrder) -> FoundRecipe | NoRecipe | None:
    return await recipes.find(scope, order) if recipes else None


async def read_job(store: Store, identity: CallIdentity, job_id: str) -> str | Job | None:
    """Return the stored answer to a call about a stored job, else the job."""
    given, job = await asyncio.gather(read_given(store, identity), jobs.load(store, job_id), return_exceptions=True)
    return answer if (answer := _valid(given)) is not None else _valid(job)


def _valid(result: _Value | BaseException) -> _Value:
    """Return a result, or raise it if it is an exception; the exception of an unused result is dropped."""
    if isinstance(result, BaseException):
        raise result
    return result
