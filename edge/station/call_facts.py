"""Reads the facts for a job method call in one round trip, and a recipe that is not cached in a second one.

The guards of the commit of the call detect later changes.
"""

from collections.abc import Iterable

from msgspec import Struct

from edge.model.acceptance import Allowed
from edge.model.isa95 import JobOrder
from edge.station.recipe_lookup import FoundRecipe, NoRecipe, RecipeLookup
from edge.store import dedupe, jobs, resources, undelivered
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.query import Replies, StoreQuery


class CallIdentity(Struct, frozen=True):
    """The identity of a call, under which its answer is stored: source and id of its event, and its transaction."""

    source: str
    event_id: str
    scope: str
    transaction: str | None


class OrderFacts(Struct, frozen=True):
    """What Store, StoreAndStart and Update depend on.

    `allowed` holds the named resources that the scope allows, `removed_at` is when a job of this id was removed.
    `undelivered` counts the ended jobs whose result the MES has not received in time.
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


def _answer_queries(keys: Keys, identity: CallIdentity) -> tuple[StoreQuery[str | None], ...]:
    """Return the queries of the stored answer to a call: that to its event, then that of its transaction."""
    event = dedupe.query_answer(keys, identity.source, identity.event_id)
    if identity.transaction is None:
        return (event,)
    return (event, dedupe.query_transaction_answer(keys, identity.scope, identity.transaction))


def _stored_answer(replies: Replies, queries: Iterable[StoreQuery[str | None]]) -> str | None:
    """Return the first stored answer; None when the call is new."""
    return next((answer for query in queries if (answer := replies.value(query)) is not None), None)


async def read_answer(store: Store, identity: CallIdentity) -> str | None:
    """Return the stored answer to a call; None when it is new."""
    queries = _answer_queries(store.keys, identity)
    return _stored_answer(await store.fetch_all(*queries), queries)


async def read_order_facts(
    store: Store, identity: CallIdentity, order: JobOrder, recipes: RecipeLookup | None
) -> str | OrderFacts:
    """Return the stored answer to a call with an order, else the facts for its plan."""
    keys, scope = store.keys, identity.scope
    answered = _answer_queries(keys, identity)
    before = jobs.query_job(keys, order.job_order_id)
    removed_at = dedupe.query_removal(keys, order.job_order_id)
    allowed = resources.query_named(keys, scope, order)
    open_jobs, waiting = jobs.query_open_count(keys, scope), undelivered.query_count(keys, scope)
    replies = await store.fetch_all(*answered, before, removed_at, allowed, open_jobs, waiting)
    if (answer := _stored_answer(replies, answered)) is not None:
        return answer
    return OrderFacts(
        before=replies.value(before),
        removed_at=replies.value(removed_at),
        allowed=replies.value(allowed),
        open_jobs=replies.value(open_jobs),
        undelivered=replies.value(waiting),
        recipe=await recipes.find(scope, order) if recipes else None,
    )


async def read_job(store: Store, identity: CallIdentity, job_id: str) -> str | Job | None:
    """Return the stored answer to a call about a stored job, else the job."""
    answered, job = _answer_queries(store.keys, identity), jobs.query_job(store.keys, job_id)
    replies = await store.fetch_all(*answered, job)
    answer = _stored_answer(replies, answered)
    return replies.value(job) if answer is None else answer
