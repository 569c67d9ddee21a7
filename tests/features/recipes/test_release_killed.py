"""A release that is killed is whole or has not happened: Work Master, revision, name and draft are one commit."""

import asyncio
import os
import random
import signal
import sys

import msgspec
import pytest

from edge.config import RedisSettings
from edge.features.recipes.drafts import load_drafts
from edge.features.recipes.revisions import load_revision, load_revisions, recipe_hash
from edge.model.isa95 import WorkMaster
from edge.store.client import Store
from edge.store.resources import load_work_master_at_revision
from tests.features.recipes.desks import ANNA, SCOPE, desk_on

pytestmark = pytest.mark.slow
KILLS = 6
_LONGEST_S = 0.4


async def killed_after(seconds: float, redis: RedisSettings) -> None:
    """Kill a program that releases recipes so long after it began."""
    module = "tests.features.recipes.releasing"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, redis.url, redis.prefix), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"begun\n"
    await asyncio.wait([asyncio.create_task(process.wait())], timeout=seconds)
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()


async def test_killed_release_is_whole_or_has_not_happened(store: Store, redis: RedisSettings) -> None:
    chance = random.Random(7)
    before = 0
    for _ in range(KILLS):
        await killed_after(chance.uniform(0.05, _LONGEST_S), redis)
        numbers = [item.number for item in await load_revisions(store, SCOPE, "WM")]
        assert numbers == list(range(numbers[0], numbers[0] - len(numbers), -1))
        assert numbers[0] >= before
        before = numbers[0]
        released = await load_revision(store, SCOPE, "WM")
        stored = await load_work_master_at_revision(store, "WM", SCOPE)
        assert released is not None
        assert stored is not None
        assert plain(stored.work_master) == plain(released.work_master)
        assert (stored.recipe.revision, stored.recipe.hash) == (released.number, recipe_hash(released.work_master))
        desk = desk_on(store)
        for draft in await load_drafts(store):
            # A draft that was left is whole: it can be looked at, and it is not the one that was released.
            assert draft.base <= numbers[0]
            assert (await desk.view(draft)).recipe is not None
            await desk.discard(draft.id, draft.current, ANNA)
    assert before > KILLS


def plain(master: WorkMaster) -> object:
    return msgspec.json.decode(msgspec.json.encode(master))
