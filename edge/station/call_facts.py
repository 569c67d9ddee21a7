"""Reads the facts for a job method call in one round trip; the guards of its commit detect later changes."""

from msgspec import Struct

from edge.model.acceptance import Allowed
from edge.model.isa95 import JobOrder
from edge.station.recipe_lookup import FoundRecipe, NoRecipe, RecipeLookup
from edge.store import dedupe, jobs, resources, undelivered
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.query import Query


class CallIdentity(Struct, frozen=True):
    """The identity of a call, under which its answer is stored: source and id of its event, and its transaction."""

    source: str
    event_id: str
    scope: str
    transaction: str | None


class OrderFacts(Struct, frozen=True):
    """What Store, StoreAndStart and Update depend on.

    `allowed` is what the scope allows of all that the order names, `removed_at` is when a job of this id was removed.
    `undelivered` counts the jobs that stay beyond their time.
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


def _query_given(keys: Keys, identity: CallIdentity) -> Query[str | None]:
    """Return the query of the stored answer to a call; its value is None when the call is new."""
    if identity.transaction is None:
        return dedupe.query_answer(keys, identity.source, identity.event_id)
    event, transaction = (identity.source, identity.event_id), (identity.scope, identity.transaction)
    return dedupe.query_either_answer(keys, event, transaction)


async def read_given(store: Store, identity: CallIdentity) -> str | None:
    """Return the stored answer to a call; None when it is new."""
    return await store.fetch(_query_given(store.keys, identity))


async def read_order_facts(
    store: Store, identity: CallIdentity, order: JobOrder, recipes: RecipeLookup | None
) -> str | OrderFacts:
    """Return the stored answer to a call with an order, else the facts for its plan."""
    keys, scope, job_id = store.keys, identity.scope, order.job_order_id
    values = await store.fetch_all(
        _query_given(keys, identity),
        jobs.query_job(keys, job_id),
        dedupe.query_removal(keys, job_id),
        resources.query_named(keys, scope, order),
        jobs.query_open_count(keys, scope),
        undelivered.query_count(keys, scope),
    )
    given: str | None = next(values)
    if given is not None:
        return given
    before, removed_at, allowed, open_jobs, waiting = values
    recipe = await recipes.find(scope, order) if recipes else None
    return OrderFacts(before, removed_at, allowed, open_jobs, waiting, recipe)


async def read_job(store: Store, identity: CallIdentity, job_id: str) -> str | Job | None:
    """Return the stored answer to a call about a stored job, else the job."""
    values = await store.fetch_all(_query_given(store.keys, identity), jobs.query_job(store.keys, job_id))
    given: str | None = next(values)
    if given is not None:
        return given
    job: Job | None = next(values)
    return job
