"""Drafts of recipes: what engineers change before a release, with each version for undo and redo.

A draft may have faults. Its versions have numbers that are never used twice: a change names the version that its author
has seen, so that no change overwrites what another person has saved since.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.features.recipes import keys as recipes_keys
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Fewer, at_revision, join, operation
from edge.store.keys import Keys

_REVISION: Final = "rev"
_DRAFT: Final = "draft"
_TEXT: Final = "text:"
MOST_BYTES: Final = 256 * 1024
"""The longest text of a recipe, as a Work Master of the MES may have it."""
MOST_FILE_BYTES: Final = 2 * 1024 * 1024
"""The longest file of a PLC tool, which stays the text of a draft while it has faults."""
_MOST_HISTORY_BYTES: Final = 16 * MOST_BYTES


class DraftVersion(Struct, frozen=True, kw_only=True):
    """A version: `change` is what made it, such as `insert_after` or `text`; `size` is that of its text in bytes."""

    number: int
    at: int
    author: str
    change: str
    size: int


class PendingRelease(Struct, frozen=True, kw_only=True):
    """A person wants to release a version; another one has to confirm it."""

    version: int
    at: int
    by: str
    reason: str


class RecipeDraft(Struct, frozen=True, kw_only=True):
    """A draft without its texts; instants are milliseconds since the epoch.

    `base` is the revision with which it began, 0 for none. `current` is the version that is shown: later ones were
    undone. `saves` counts every change. `changed_by` also undid and redid. `last_call` is the id of the last change.
    """

    id: str
    scope: str
    work_master: str
    base: int
    created_at: int
    author: str
    versions: tuple[DraftVersion, ...]
    current: int
    saves: int
    changed_at: int
    changed_by: str
    last_call: str = ""
    request: PendingRelease | None = None

    @property
    def place(self) -> int:
        """The place of the current version in the list."""
        return next(place for place, version in enumerate(self.versions) if version.number == self.current)


class Edit(Struct, frozen=True, kw_only=True):
    """The author and the kind of a change, its instant, and the id of the request; empty where it cannot repeat."""

    author: str
    at: int
    change: str
    call: str = ""


def plan_creation(
    keys: Keys, draft_id: str, target: tuple[str, str, int], text: str, by: Edit, most: int
) -> tuple[RecipeDraft, Commit]:
    """Return a draft of scope, Work Master and revision, and its commit; stale when it exists or there are too many."""
    scope, work_master, base = target
    version = _version(1, text, by)
    draft = RecipeDraft(
        id=draft_id,
        scope=scope,
        work_master=work_master,
        base=base,
        created_at=by.at,
        author=by.author,
        versions=(version,),
        current=1,
        saves=1,
        changed_at=by.at,
        changed_by=by.author,
        last_call=by.call,
    )
    key, listed = recipes_keys.recipe_draft(keys, draft_id), recipes_keys.recipe_drafts(keys)
    guards = Commit(guards=(Absent(key), Fewer(listed, draft_id, most)))
    written = operation("HSET", key, *_fields(draft), f"{_TEXT}1", text)
    return draft, join((guards, written, operation("ZADD", listed, by.at, draft_id)))


def plan_save(keys: Keys, draft: RecipeDraft, text: str, by: Edit, most: int) -> tuple[RecipeDraft, Commit]:
    """Return a draft with one more version, and its commit; undone versions go, and the oldest beyond the bound."""
    version = _version(draft.saves + 1, text, by)
    versions = _bounded((*draft.versions[: draft.place + 1], version), most)
    saved = replace(draft, versions=versions, current=version.number)
    return _changed(keys, draft, saved, by, (f"{_TEXT}{version.number}", text))


def plan_step(keys: Keys, draft: RecipeDraft, by: Edit, to: int) -> tuple[RecipeDraft, Commit]:
    """Return a draft that shows the version at another place of its list, and its commit: undo and redo."""
    return _changed(keys, draft, replace(draft, current=draft.versions[to].number), by)


def plan_base(keys: Keys, draft: RecipeDraft, by: Edit, base: int) -> tuple[RecipeDraft, Commit]:
    """Return a draft whose author has seen a later revision, and its commit."""
    return _changed(keys, draft, replace(draft, base=base), by)


def plan_request(keys: Keys, draft: RecipeDraft, by: Edit, reason: str) -> tuple[RecipeDraft, Commit]:
    """Return a draft that awaits a second person, and its commit; each later change takes the request back."""
    request = PendingRelease(version=draft.current, at=by.at, by=by.author, reason=reason)
    changed, commit = _changed(keys, draft, draft, by, request=request)
    return changed, commit


def plan_discard(keys: Keys, draft: RecipeDraft) -> Commit:
    """Return the commit that removes a draft with its history."""
    key = recipes_keys.recipe_draft(keys, draft.id)
    return join(
        (
            Commit(guards=(at_revision(key, draft.saves),)),
            operation("DEL", key),
            operation("ZREM", recipes_keys.recipe_drafts(keys), draft.id),
        )
    )


async def load_draft(store: Store, draft_id: str) -> RecipeDraft | None:
    """Read a draft; None when there is none."""
    text = await store.execute("HGET", recipes_keys.recipe_draft(store.keys, draft_id), _DRAFT)
    return None if text is None else msgspec.json.decode(text, type=RecipeDraft)


async def load_drafts(store: Store) -> Sequence[RecipeDraft]:
    """Read all drafts, the oldest first."""
    ids: Sequence[str] = await store.execute("ZRANGE", recipes_keys.recipe_drafts(store.keys), 0, -1)
    texts = await store.read([("HGET", recipes_keys.recipe_draft(store.keys, draft_id), _DRAFT) for draft_id in ids])
    return [msgspec.json.decode(text, type=RecipeDraft) for text in texts if text is not None]


async def load_text(store: Store, draft_id: str, version: int) -> str | None:
    """Read the text of a version; None when it is gone."""
    text: str | None = await store.execute("HGET", recipes_keys.recipe_draft(store.keys, draft_id), f"{_TEXT}{version}")
    return text


def _version(number: int, text: str, by: Edit) -> DraftVersion:
    return DraftVersion(number=number, at=by.at, author=by.author, change=by.change, size=len(text.encode()))


def _bounded(versions: tuple[DraftVersion, ...], most: int) -> tuple[DraftVersion, ...]:
    """Return the newest versions, as many as the setting and the memory allow; always the last one."""
    kept, size = len(versions) - 1, versions[-1].size
    while kept > 0 and len(versions) - kept < most and size + versions[kept - 1].size <= _MOST_HISTORY_BYTES:
        kept -= 1
        size += versions[kept].size
    return versions[kept:]


def _changed(
    keys: Keys,
    before: RecipeDraft,
    after: RecipeDraft,
    by: Edit,
    text: tuple[str, ...] = (),
    request: PendingRelease | None = None,
) -> tuple[RecipeDraft, Commit]:
    """Return the draft with its new number of saves, and the commit that replaces the draft before."""
    key = recipes_keys.recipe_draft(keys, before.id)
    changed = replace(
        after,
        saves=before.saves + 1,
        changed_at=by.at,
        changed_by=by.author,
        last_call=by.call,
        request=request,
    )
    numbers = {version.number for version in changed.versions}
    gone = [f"{_TEXT}{version.number}" for version in before.versions if version.number not in numbers]
    return changed, join(
        (
            Commit(guards=(at_revision(key, before.saves),)),
            operation("HSET", key, *_fields(changed), *text),
            operation("HDEL", key, *gone) if gone else Commit(),
        )
    )


def _fields(draft: RecipeDraft) -> tuple[str, ...]:
    return _REVISION, str(draft.saves), _DRAFT, msgspec.json.encode(draft).decode()
