"""A program that changes and releases a recipe again and again, until it is killed: `python -m ... URL PREFIX`."""

import asyncio
import sys
from itertools import count

from edge.config import RedisSettings
from edge.features.recipes.changes import InsertAfter
from edge.features.recipes.release import release_draft, release_recipe
from edge.foundation.errors import Refused
from edge.station.settings import SettingSource
from edge.store.open_store import open_store
from tests.features.recipes.desks import ANNA, SCOPE, SOUND, desk_on


async def release_for_ever(url: str, prefix: str) -> None:
    """Release drafts of the Work Master WM, each with one more step."""
    async with open_store(RedisSettings(url=url, prefix=prefix, durability="any"), "releasing") as store:
        desk = desk_on(store)
        if await desk.work_master(SCOPE, "WM") is None:
            await release_recipe(desk, SCOPE, "WM", SOUND, "first", ANNA, SettingSource.COMMAND)
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        for number in count():
            draft = await desk.create(SCOPE, "WM", ANNA)
            try:
                changed, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", f"S{number % 5}"), ANNA)
            except Refused:
                await desk.discard(draft.id, draft.current, ANNA)
                await release_recipe(desk, SCOPE, "WM", SOUND, "again", ANNA, SettingSource.COMMAND)
                continue
            await release_draft(desk, changed.id, changed.current, f"step {number}", ANNA, SettingSource.COMMAND)


if __name__ == "__main__":
    asyncio.run(release_for_ever(*sys.argv[1:]))
