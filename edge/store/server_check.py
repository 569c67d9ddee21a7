"""Checks that a Redis server keeps its data, that we can read them, and that keys below our prefix are ours."""

import functools
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from edge.foundation.errors import Defect, SettingsError
from edge.foundation.text import Text
from edge.store import ended_jobs
from edge.store.bounds import BoundedCount, BoundedCounts, CountLimits, MarksBySender
from edge.store.client import Store
from edge.store.connection import AccessDenied
from edge.store.dedupe import MarkCounter, count_by_sender, count_marks, is_any_sender_near
from edge.store.ended_jobs import KeptResults
from edge.store.keys import KeySpec, key_specs
from edge.store.reads import scan_keys

STORE_VERSION = 1
"""The version of the stored data. A change that an older version would misread raises it and must convert the data."""

NEARLY_FULL = 0.85
"""The used part of the memory limit from which a server counts as nearly full."""


_Version = tuple[int, ...]
_DURABILITY = ("server", "memory", "persistence")
_LOADS_ALL: Mapping[str, _Version] = MappingProxyType({"redis": (8, 6), "valkey": (9, 1, 2)})
"""From these versions on a server loads its append-only file whatever the rights of its users are."""


class MemoryUsage(Struct, frozen=True):
    """The memory that the data use and may use, in bytes; 0 for no limit."""

    used: int
    limit: int

    @property
    def fullness(self) -> float:
        """The used part of the limit; 0.0 without a limit."""
        return self.used / self.limit if self.limit else 0.0

    @property
    def is_nearly_full(self) -> bool:
        """Whether the server is nearly full."""
        return self.fullness >= NEARLY_FULL


class ServerState(Struct, frozen=True):
    """How full a server is, and whether it could write its last change to disk; if not, it refuses further changes."""

    memory: MemoryUsage
    can_write: bool
    counts: BoundedCounts
    problems: tuple[Text, ...] = ()
    """Why the server may lose decisions now, where `[redis] durability` requires that it does not."""


async def read_state(store: Store, limits: CountLimits, counter: MarkCounter) -> ServerState:
    """Return the state of the server: one round trip unless it has many marks. Raises Unavailable."""
    info, *lengths = await store.read(
        [
            ("INFO", "memory", "persistence", "keyspace"),
            *(count for scope in limits.scopes for count in ended_jobs.queries_of_counts(store.keys, scope)),
        ]
    )
    marks = await count_marks(store, info, limits.marks, counter)
    by_sender = await count_by_sender(store, limits.marks) if is_any_sender_near(marks) else MarksBySender()
    kept = [KeptResults(*map(int, lengths[at : at + 2])) for at in range(0, len(lengths), 2)]
    not_delivered = [BoundedCount(results.undelivered, limits.undelivered) for results in kept]
    not_confirmed = [BoundedCount(results.undelivered + results.unconfirmed, limits.undelivered) for results in kept]
    return ServerState(
        memory=MemoryUsage(int(info["used_memory"]), int(info["maxmemory"])),
        can_write=can_write(info),
        counts=BoundedCounts(
            marks,
            dict(zip(limits.scopes, not_delivered, strict=True)),
            by_sender,
            dict(zip(limits.scopes, not_confirmed, strict=True)),
        ),
        problems=(*store.problems, *(_durability_problems(info) if store.is_durable else ())),
    )


def can_write(info: Mapping[str, str]) -> bool:
    """Return whether the server could write its last change to disk, by the fields of INFO."""
    return not int(info["aof_enabled"]) or info["aof_last_write_status"] == "ok"


async def check_durability(store: Store) -> None:
    """Raise SettingsError when the server may lose decisions: for the first use of a store."""
    problems = (*await lasting_problems(store), *_durability_problems(await _durability_info(store)))
    if problems:
        advice = 'Correct the configuration of the Redis server; or set [redis] durability = "any" and accept the loss.'
        raise SettingsError([Text.of("the Redis server {problem}", problem=problem) for problem in problems], advice)


async def _durability_info(store: Store) -> Mapping[str, str]:
    sections: list[Mapping[str, str]] = await store.read([("INFO", text) for text in _DURABILITY])
    return {name: value for section in sections for name, value in section.items()}


async def lasting_problems(store: Store) -> tuple[Text, ...]:
    """Return why the server may lose decisions at its next start, as far as `read_state` does not see it."""
    if await drops_transactions(store, await _durability_info(store)):
        return (Text.of("drops transactions at its next start: its user default has no right to execute them"),)
    return ()


async def check_version(store: Store) -> None:
    """Write our version to a store without one. Raises SettingsError when a newer version has written the store."""
    await store.execute("SET", store.keys.store_version(), STORE_VERSION, "NX")
    written_by = await store.execute("GET", store.keys.store_version())
    if int(written_by) > STORE_VERSION:
        raise SettingsError(
            [
                Text.of(
                    "the store was written by a newer version: its data have version {written_by}, not {store_version}",
                    written_by=written_by,
                    store_version=STORE_VERSION,
                )
            ],
            "Install the newer version again, or restore a backup of the store that was made before it.",
        )


async def drops_transactions(store: Store, info: Mapping[str, str]) -> bool:
    """Return whether the server would drop the transactions of its append-only file at its next start.

    It executes them with the rights of its user `default` (github.com/valkey-io/valkey/issues/3983). False when our own
    user has no right to see that. Raises Unavailable.
    """
    product, version = product_of(info)
    if _parse(version) >= _LOADS_ALL[product]:
        return False
    try:
        answers = [
            await store.execute("ACL DRYRUN", "default", *command)
            for command in (("EXEC",), ("SET", store.keys.store_version(), STORE_VERSION))
        ]
    except (AccessDenied, Defect):  # our user has not the right, or the server is older than Redis 7
        return False
    return any(answer != "OK" for answer in answers)


def product_of(info: Mapping[str, str]) -> tuple[str, str]:
    """Return the product of an INFO reply, `redis` or `valkey`, and its version."""
    product = "valkey" if info.get("server_name") == "valkey" else "redis"
    return product, str(info[f"{product}_version"])


def _parse(version: str) -> _Version:
    numbers = (part.partition("-")[0] for part in version.split("."))
    return tuple(int(number) for number in numbers if number.isdecimal())


def _durability_problems(info: Mapping[str, str]) -> Iterator[Text]:
    policy = info["maxmemory_policy"]
    if policy != "noeviction" and int(info["maxmemory"]):
        yield Text.of(
            "drops keys when it is full: its maxmemory-policy is {policy}, expected noeviction", policy=policy
        )
    if not int(info["aof_enabled"]):
        yield Text.of("does not write down each change: its appendonly is no, expected yes")


_SAMPLE = 200
"""The most keys that are examined; a store of ours without a mark is nearly empty."""


async def check_prefix(store: Store) -> None:
    """Raise SettingsError when another application keeps its data below our prefix."""
    if await store.execute("TYPE", store.keys.store_version()) == "string":
        return
    prefix = store.keys.prefix
    found = await _sample_keys(store, prefix)
    types = await store.read([("TYPE", key) for key in found])
    # A key that was removed meanwhile has no type.
    foreign = [
        f"{key} ({kind})"
        for key, kind in sorted(zip(found, types, strict=True))
        if kind != "none" and not _is_ours(key.removeprefix(f"{prefix}:"), kind)
    ]
    if foreign:
        shown = ", ".join(foreign[:3])
        problem = Text.of(
            "another application keeps its data in Redis below our prefix {prefix!r}: {shown}",
            prefix=prefix,
            shown=shown,
        )
        raise SettingsError([problem], "Set [redis] prefix to a word that no other application uses.")


async def _sample_keys(store: Store, prefix: str) -> list[str]:
    """Return some keys below a prefix, however many keys other prefixes have."""
    found: list[str] = []
    async for batch in scan_keys(store, f"{prefix}:*"):
        found += batch
        if len(found) >= _SAMPLE:
            break
    return found


def _is_ours(name: str, kind: str) -> bool:
    """Return whether a key, by its name without the prefix and its type, can be one of ours."""
    return any(kind == spec.type and _expression(spec).fullmatch(name) for spec in key_specs())


@functools.cache
def _expression(spec: KeySpec) -> re.Pattern[str]:
    # A store with our mark needs none of these hundred.
    return spec.expression()
