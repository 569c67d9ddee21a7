"""What the MES sets in a station: work masters, resources, the limit of job orders, rules, definitions of tags."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from edge.model.acceptance import Allowed, ResourceKind, named_resources, named_work_masters
from edge.model.isa95 import JobOrder, WorkMaster
from edge.model.recipe_name import NO_RECIPE_NAME, RecipeName, read_recipe_name
from edge.store import version
from edge.store.client import Store, block_ms
from edge.store.commit import Commit, Revision, at_revision, fields, join, operation, spread
from edge.store.keys import Keys
from edge.store.query import StoreQuery
from edge.store.reads import entries, load_readable
from edge.store.version import Document

_SCOPE = "scope:"
"""Prefix of the field of a work master that holds its content for a scope that lists it.

Another scope may hold other content under the same id. `work_master` is the content of the first of them.
"""

_NAMED: Final = "recipe:"
"""Prefix of the field of a work master that names the revision of its content for a scope."""
REVISION_SPAN = 1_000_000
"""A revision counts the changes below this number; the part above it is random."""
_STREAM_LENGTH = 100
DATASCHEMA = "https://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/ISA95WorkMasterDataType/v2.0.0"


def save_work_master(keys: Keys, scope: str, work_master: WorkMaster) -> Commit:
    """Store a work master for a scope and allow it there; the content that other scopes stored under its id stays."""
    key, content = keys.workmaster(work_master.id), msgspec.json.encode(work_master).decode()
    # A recorder of revisions names the content again in the same commit.
    written = {
        "_dataschema": DATASCHEMA,
        version.FIELD: str(version.current_version(Document.WORK_MASTER)),
        f"{_SCOPE}{scope}": content,
    }
    return join(
        (
            # A random beginning: a Work Master that was removed and stored again must not be taken for the earlier one.
            operation("HSETNX", key, "rev", secrets.randbits(32) * REVISION_SPAN),
            operation("HSETNX", key, "work_master", content),
            operation("HSET", key, *fields(written)),
            operation("HDEL", key, f"{_NAMED}{scope}"),
            operation("HINCRBY", key, "rev", 1),
            operation("SADD", keys.workmaster_list(scope), work_master.id),
        )
    )


def name_recipe(keys: Keys, scope: str, work_master_id: str, name: RecipeName) -> Commit:
    """Name the revision of the content that a scope has of a work master: jobs that start with it bear the name."""
    return operation("HSET", keys.workmaster(work_master_id), f"{_NAMED}{scope}", str(name))


async def plan_removal(store: Store, scope: str, work_master_ids: Iterable[str]) -> Commit:
    """Remove work masters from the list of a scope, and delete those that no other scope lists.

    Running jobs keep the recipe they started with. Stale when one of them was written meanwhile.
    """
    keys, ids = store.keys, tuple(dict.fromkeys(work_master_ids))
    found = await store.read([("HGETALL", keys.workmaster(identifier)) for identifier in ids])
    return join(_remove(keys, scope, work_master_id, known) for work_master_id, known in zip(ids, found, strict=True))


def _remove(keys: Keys, scope: str, work_master_id: str, known: Mapping[str, str]) -> Commit:
    key, field = keys.workmaster(work_master_id), f"{_SCOPE}{scope}"
    others = any(name.startswith(_SCOPE) and name != field for name in known)
    return join(
        (
            Commit(guards=(at_revision(key, int(known.get("rev", 0))),)),
            # A new revision: a removal from another scope that is decided at the same time must be stale.
            join((operation("HDEL", key, field, f"{_NAMED}{scope}"), operation("HINCRBY", key, "rev", 1)))
            if others
            else operation("DEL", key),
            operation("SREM", keys.workmaster_list(scope), work_master_id),
        )
    )


def allow(keys: Keys, kind: ResourceKind, scope: str, ids: Iterable[str]) -> Commit:
    """Allow resources in a scope."""
    return spread("SADD", (keys.resource_list(kind, scope),), ids)


def disallow(keys: Keys, kind: ResourceKind, scope: str, ids: Iterable[str]) -> Commit:
    """Remove resources from the list of a scope."""
    return spread("SREM", (keys.resource_list(kind, scope),), ids)


def set_max_job_orders(keys: Keys, scope: str, limit: int | None) -> Commit:
    """Set the most job orders of a scope; None restores the value of the settings."""
    if limit is None:
        return operation("DEL", keys.jobacceptance(scope))
    return operation("SET", keys.jobacceptance(scope), limit)


def append_change(keys: Keys, scope: str) -> Commit:
    """Append a change of the settings of a scope for the other instances."""
    return operation("XADD", keys.settings_changes(), "MAXLEN", "~", _STREAM_LENGTH, "*", "scope", scope)


async def latest_change(store: Store) -> str:
    """Return the position of the newest change of settings; `0-0` for none."""
    newest = await store.execute("XREVRANGE", store.keys.settings_changes(), "+", "-", "COUNT", 1)
    return str(newest[0][0]) if newest else "0-0"


async def wait_for_changes(store: Store, after: str) -> tuple[str, frozenset[str]]:
    """Wait some seconds for changes of settings; return the newest position and the scopes that changed."""
    reply = await store.wait("XREAD", "BLOCK", block_ms(), "STREAMS", store.keys.settings_changes(), after)
    found = [entry for (raw,) in (reply or {}).values() for entry in entries(raw)]
    return (found[-1].entry_id if found else after), frozenset(entry.fields.get("scope", "") for entry in found)


async def load_allowed(store: Store, scope: str) -> Allowed:
    """Read all lists of a scope in one round trip."""
    keys = store.keys
    masters, limit, *members = await store.read(
        [
            ("SMEMBERS", keys.workmaster_list(scope)),
            ("GET", keys.jobacceptance(scope)),
            *(("SMEMBERS", keys.resource_list(kind, scope)) for kind in ResourceKind),
        ]
    )
    return Allowed(
        work_masters=frozenset(masters),
        resources={kind: frozenset(ids) for kind, ids in zip(ResourceKind, members, strict=True)},
        max_job_orders=_limit(limit),
    )


def _limit(stored: str | None) -> int | None:
    return None if stored is None else int(stored)


def query_named(keys: Keys, scope: str, order: JobOrder) -> StoreQuery[Allowed]:
    """Return the query of the resources that an order names and the scope allows."""
    # The lists of the scope may have thousands of ids: they are not read.
    resources = named_resources(order)
    lists = [(keys.workmaster_list(scope), named_work_masters(order))]
    lists += [(keys.resource_list(kind, scope), ids) for kind, ids in resources.items()]

    def value(limit: str | None, *replies: Sequence[int]) -> Allowed:
        found = iter(replies)
        masters, *members = [_members(ids, next(found)) if ids else frozenset[str]() for _, ids in lists]
        return Allowed(
            work_masters=masters,
            resources=dict(zip(resources, members, strict=True)),
            max_job_orders=_limit(limit),
        )

    memberships = (("SMISMEMBER", key, *ids) for key, ids in lists if ids)
    return StoreQuery((("GET", keys.jobacceptance(scope)), *memberships), value)


def _members(ids: Sequence[str], reply: Sequence[int]) -> frozenset[str]:
    return frozenset(identifier for identifier, member in zip(ids, reply, strict=True) if member)


class StoredWorkMaster(Struct, frozen=True):
    """A work master of a scope, the guard that it is unchanged, and the name of its revision."""

    work_master: WorkMaster
    revision: Revision
    recipe: RecipeName = NO_RECIPE_NAME


async def load_work_master_at_revision(
    store: Store, work_master_id: str, scope: str | None = None
) -> StoredWorkMaster | None:
    """Read a work master; None when there is none."""
    key = store.keys.workmaster(work_master_id)
    stored = await store.execute("HGETALL", key)
    if not stored:
        return None
    name = read_recipe_name(stored.get(f"{_NAMED}{scope}", ""))
    return StoredWorkMaster(_work_master(scope, stored), at_revision(key, int(stored.get("rev", 0))), name)


def _work_master(scope: str | None, stored: Mapping[str, str]) -> WorkMaster:
    fields = version.upgrade_fields(Document.WORK_MASTER, stored)
    # A field that an earlier release wrote is empty: the content was the same for all scopes.
    of_scopes = [fields[name] for name in sorted(fields) if name.startswith(_SCOPE) and fields[name]]
    of_scope = next(iter(of_scopes), "") if scope is None else fields.get(f"{_SCOPE}{scope}")
    content = of_scope or fields["work_master"]
    return msgspec.json.decode(content, type=WorkMaster)


async def load_work_masters(store: Store, scope: str, ids: Iterable[str] | None = None) -> Sequence[WorkMaster]:
    """Read work masters of a scope, by default all; one that cannot be read is logged and left out."""
    wanted = sorted(await store.execute("SMEMBERS", store.keys.workmaster_list(scope)) if ids is None else ids)
    return await load_readable(store, [store.keys.workmaster(value) for value in wanted], partial(_work_master, scope))


_REVISION: Final = "rev"


class StoredTexts(Struct, frozen=True):
    """The texts by their names, in the order of the names, and the revision that guards them."""

    revision: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


class SettingTexts(Struct, frozen=True):
    """Reads and writes the texts of one key; `begin` begins each field: a name may be any text, also `rev`."""

    key_of: Callable[[Keys], str]
    begin: str

    async def load(self, store: Store) -> StoredTexts:
        """Read all texts."""
        found = await store.execute("HGETALL", self.key_of(store.keys))
        begin = self.begin
        texts = {name.removeprefix(begin): text for name, text in sorted(found.items()) if name.startswith(begin)}
        return StoredTexts(int(found.get(_REVISION, 0)), texts)

    async def count_without(self, store: Store, names: Iterable[str]) -> tuple[int, int]:
        """Return the revision, and how many texts have other names than these."""
        key, named = self.key_of(store.keys), [f"{self.begin}{name}" for name in names]
        fields_in_all, (revision, *known) = await store.read(
            [("HLEN", key), ("HMGET", key, _REVISION, *named)],
        )
        return int(revision or 0), int(fields_in_all) - (revision is not None) - sum(
            value is not None for value in known
        )

    async def revision(self, store: Store) -> int:
        """Return how often the texts were changed; 0 before the first."""
        return int(await store.execute("HGET", self.key_of(store.keys), _REVISION) or 0)

    def save(self, keys: Keys, revision: int, changes: Mapping[str, str | None]) -> Commit:
        """Write changed texts over those of a revision; None removes one."""
        key = self.key_of(keys)
        written = {f"{self.begin}{name}": text for name, text in changes.items() if text is not None}
        gone = [f"{self.begin}{name}" for name, text in changes.items() if text is None]
        head: list[Any] = [_REVISION, str(revision + 1)]
        return join(
            (
                Commit((at_revision(key, revision),), (("HSET", key, *head),)),
                spread("HSET", (key,), fields(written)),
                spread("HDEL", (key,), gone),
            )
        )


RULES: Final = SettingTexts(Keys.telemetry_rules, "id:")
TAGS: Final = SettingTexts(Keys.telemetry_definitions, "tag:")
