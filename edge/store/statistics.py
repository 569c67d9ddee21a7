"""Numbers about the store, without its content."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from edge.store.bulk_reads import scan_keys
from edge.store.client import Store
from edge.store.keys import key_specs

_LENGTHS = {"hash": "HLEN", "set": "SCARD", "zset": "ZCARD", "stream": "XLEN", "string": "STRLEN", "list": "LLEN"}
_REPORTED = re.compile(
    r"(redis|valkey|server|used_memory|maxmemory|mem_frag|aof|rdb|connected|blocked|uptime|evicted|expired|"
    r"rejected|total_(connections|commands)|instantaneous|db\d|role|loading)"
)
_PATTERNS = [
    (spec.expression(), spec.pattern)
    # `joborder:list:{scope}` before `joborder:{id}`.
    for spec in sorted(key_specs(), key=lambda spec: len(re.sub(r"{\w+}", "", spec.pattern)), reverse=True)
]


class KeyStatistics(msgspec.Struct):
    """All keys of a pattern: how many, how many entries in them, how many bytes they take."""

    keys: int = 0
    entries: int = 0
    bytes: int = 0


async def read_server_info(store: Store) -> Mapping[str, Any]:
    """Return versions, memory, disk and clients of the server."""
    info: Mapping[str, str] = await store.execute("INFO")
    reported = {name: value for name, value in info.items() if _REPORTED.match(name)}
    return msgspec.convert(reported, dict[str, int | float | str], strict=False)


async def read_key_statistics(store: Store) -> dict[str, KeyStatistics]:
    """Count keys by their pattern, without their names."""
    found: dict[str, KeyStatistics] = {}
    async for batch in scan_keys(store, f"{store.keys.prefix}:*"):
        types = await store.read([("TYPE", key) for key in batch])
        lengths = await store.read(
            [(_LENGTHS.get(kind, "EXISTS"), key) for kind, key in zip(types, batch, strict=True)]
        )
        sizes = await store.read([("MEMORY USAGE", key) for key in batch])
        for key, length, size in zip(batch, lengths, sizes, strict=True):
            kind = found.setdefault(_pattern(key.removeprefix(f"{store.keys.prefix}:")), KeyStatistics())
            kind.keys += 1
            kind.entries += length or 0
            kind.bytes += size or 0
    return dict(sorted(found.items()))


def _pattern(key: str) -> str:
    return next((pattern for regex, pattern in _PATTERNS if regex.fullmatch(key)), "?")
