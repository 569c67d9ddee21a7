"""The rules that the MES has sent, by their ids, as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from edge.store.client import Store
from edge.store.commit import Commit, RedisCommand, Revision, fields, join, spread
from edge.store.keys import Keys

_REVISION: Final = "rev"
_ID: Final = "id:"
"""Begins the field of a rule: an id may be any text, also `rev`."""


@dataclass(frozen=True, slots=True)
class StoredRules:
    """The rules by their ids, in the order of the ids, and the revision that guards them."""

    revision: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


async def load(store: Store) -> StoredRules:
    """Read all rules."""
    found = await store.execute("HGETALL", store.keys.telemetry_rules())
    texts = {name.removeprefix(_ID): text for name, text in sorted(found.items()) if name.startswith(_ID)}
    return StoredRules(int(found.get(_REVISION, 0)), texts)


async def revision(store: Store) -> int:
    """Return the revision of the rules; 0 before the first."""
    return int(await store.execute("HGET", store.keys.telemetry_rules(), _REVISION) or 0)


def save(keys: Keys, before: StoredRules, changes: Mapping[str, str | None]) -> Commit:
    """Write changed rules; None removes one."""
    key = keys.telemetry_rules()
    written = {f"{_ID}{rule_id}": text for rule_id, text in changes.items() if text is not None}
    gone = [f"{_ID}{rule_id}" for rule_id, text in changes.items() if text is None]
    head: list[Any] = [_REVISION, str(before.revision + 1)]
    return join(
        (
            Commit((Revision(key, before.revision),), (RedisCommand("HSET", (key, *head)),)),
            spread("HSET", (key,), fields(written)),
            spread("HDEL", (key,), gone),
        )
    )
