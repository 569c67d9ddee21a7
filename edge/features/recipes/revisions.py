"""The revisions of a Work Master: what was stored, when, with author and reason; the newest of each stay.

The revision with the highest number is the released one: the next job runs it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from edge.config import Settings
from edge.features.recipes import keys as recipes_keys
from edge.features.recipes.settings import RecipesSettings
from edge.foundation.instant import now_ms
from edge.model.isa95 import WorkMaster
from edge.model.recipe_name import RecipeName
from edge.station.settings import SettingOrigin, SettingSource
from edge.store.client import Store
from edge.store.commit import Commit, HashField, join, operation
from edge.store.keys import Keys
from edge.store.resources import name_recipe

_NEWEST: Final = "newest"
"""The field with the number of the newest revision and the digest of its content."""
_HASH_LENGTH: Final = 12


class RevisionLine(Struct, frozen=True, kw_only=True):
    """One revision in short.

    `at` is in milliseconds since the epoch, `hash` names the recipe in job responses and OPC UA. `confirmed_by` is the
    second person, where one was needed, `draft` is the id of the draft that it was, where it was one.
    """

    number: int
    at: int
    source: SettingSource
    author: str
    reason: str
    hash: str
    confirmed_by: str = ""
    draft: str = ""


class RecipeRevision(RevisionLine, frozen=True, kw_only=True):
    """One revision with its content."""

    work_master: WorkMaster


def recipe_hash(work_master: WorkMaster) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a recipe, whatever the order of its members."""
    return _digest(work_master.data)


def _digest(content: object) -> str:
    text = msgspec.json.encode(content, order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_HASH_LENGTH]


async def plan_revisions(
    settings: Settings,
    origin: SettingOrigin,
    store: Store,
    scope: str,
    work_masters: Sequence[WorkMaster],
    draft: str = "",
) -> Commit:
    """Return what to write together with Work Masters: a revision of each that differs from its released one."""
    most = settings.section(RecipesSettings).keep_revisions
    keys = [recipes_keys.recipe_revisions(store.keys, scope, work_master.id) for work_master in work_masters]
    newest = await store.read([("HGET", key, _NEWEST) for key in keys])
    planned = zip(keys, work_masters, newest, strict=True)
    return join(
        join((_plan(key, work_master, before, origin, most, draft), _name(store.keys, scope, work_master, before)))
        for key, work_master, before in planned
    )


def _name(keys: Keys, scope: str, work_master: WorkMaster, before: str | None) -> Commit:
    """Name the revision that the Work Master is afterwards: jobs bear it."""
    number = _number(before) + (not _is_same(work_master, before))
    return name_recipe(keys, scope, work_master.id, RecipeName(number, recipe_hash(work_master)))


def _is_same(work_master: WorkMaster, before: str | None) -> bool:
    return (before or "").partition(" ")[2] == _digest(work_master)


def _plan(
    key: str, work_master: WorkMaster, before: str | None, origin: SettingOrigin, most: int, draft: str
) -> Commit:
    guard = Commit(guards=(HashField(key, _NEWEST, before),))
    if _is_same(work_master, before):
        return guard
    revision = RecipeRevision(
        number=_number(before) + 1,
        at=now_ms(),
        source=origin.source,
        author=origin.author,
        reason=origin.reason,
        confirmed_by=origin.confirmed_by,
        draft=draft,
        hash=recipe_hash(work_master),
        work_master=work_master,
    )
    text = msgspec.json.encode(revision).decode()
    written = operation("HSET", key, _NEWEST, f"{revision.number} {_digest(work_master)}", revision.number, text)
    oldest = revision.number - most
    return join((guard, written, operation("HDEL", key, oldest) if oldest > 0 else Commit()))


class ReleasedMark(Struct, frozen=True):
    """The number of the released revision, 0 without one, and the guard that it is still released."""

    number: int
    guard: Commit


async def load_released_mark(store: Store, scope: str, work_master_id: str) -> ReleasedMark:
    """Return which revision of a Work Master is released."""
    key = recipes_keys.recipe_revisions(store.keys, scope, work_master_id)
    text: str | None = await store.execute("HGET", key, _NEWEST)
    return ReleasedMark(_number(text), Commit(guards=(HashField(key, _NEWEST, text),)))


def _number(newest: str | None) -> int:
    return int((newest or "0").partition(" ")[0])


async def load_released(store: Store, scope: str, ids: Sequence[str]) -> Sequence[RevisionLine | None]:
    """Return the released revision of each Work Master; None for one that has none."""
    keys = [recipes_keys.recipe_revisions(store.keys, scope, work_master_id) for work_master_id in ids]
    newest = await store.read([("HGET", key, _NEWEST) for key in keys])
    texts = await store.read([("HGET", key, _number(text)) for key, text in zip(keys, newest, strict=True)])
    return [None if text is None else msgspec.json.decode(text, type=RevisionLine) for text in texts]


async def load_revisions(store: Store, scope: str, work_master_id: str) -> tuple[RevisionLine, ...]:
    """Return the revisions that are kept of a Work Master, the released one first."""
    fields: Mapping[str, str] = await store.execute(
        "HGETALL", recipes_keys.recipe_revisions(store.keys, scope, work_master_id)
    )
    texts = [text for name, text in fields.items() if name != _NEWEST]
    revisions = [msgspec.json.decode(text, type=RevisionLine) for text in texts]
    return tuple(sorted(revisions, key=lambda revision: -revision.number))


async def load_revision(
    store: Store, scope: str, work_master_id: str, number: int | None = None
) -> RecipeRevision | None:
    """Return one revision, by default the released one; None when it was never stored or is not kept any more."""
    key = recipes_keys.recipe_revisions(store.keys, scope, work_master_id)
    chosen = _number(await store.execute("HGET", key, _NEWEST)) if number is None else number
    text = await store.execute("HGET", key, chosen)
    return None if text is None else msgspec.json.decode(text, type=RecipeRevision)
