"""Signed commands in the store: public keys, commands on their way, executed ones and their results."""

from collections.abc import Mapping

import msgspec

from edge.features.fleet import keys as fleet_keys
from edge.features.fleet.signature import FleetResult, PublicKey
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, join, operation, spread
from edge.store.keys import Keys

RESULTS_MS = 8 * 24 * 3600 * 1000
"""How long results are kept: longer than any command lives."""


async def load_keys(store: Store) -> dict[str, PublicKey]:
    """Return the public keys by their ids; one that cannot be read is left out."""
    public_keys = {}
    for kid, text in (await store.execute("HGETALL", fleet_keys.fleet_keys(store.keys))).items():
        try:
            key = msgspec.json.decode(text, type=PublicKey)
        except (msgspec.DecodeError, RecursionError):
            continue
        if key.kid == kid:
            public_keys[kid] = key
    return public_keys


def put_key(keys: Keys, key: PublicKey) -> Commit:
    """Write a public key."""
    return operation("HSET", fleet_keys.fleet_keys(keys), key.kid, msgspec.json.encode(key).decode())


def put_command(keys: Keys, id: str, text: str) -> Commit:
    """Write a signed command for the components on this store."""
    return operation("HSET", fleet_keys.fleet_commands(keys), id, text)


async def load_commands(store: Store) -> Mapping[str, str]:
    """Return the signed commands by their ids."""
    found: Mapping[str, str] = await store.execute("HGETALL", fleet_keys.fleet_commands(store.keys))
    return found


def remove_commands(keys: Keys, ids: list[str]) -> Commit:
    """Remove commands that have expired."""
    return spread("HDEL", (fleet_keys.fleet_commands(keys),), ids)


async def begin(store: Store, id: str, mark: str, result: FleetResult, remember_ms: int) -> bool:
    """Mark a command as begun at a component; return False when it was begun or refused before."""
    keys, component = store.keys, result.component
    key = fleet_keys.fleet_executed(keys, component, mark)
    guarded = Commit((Absent(key),), (("SET", key, "1", "PX", remember_ms),))
    working = operation("HSET", fleet_keys.fleet_executing(keys, component), id, _encode(result))
    return isinstance(await store.commit(join((guarded, working, _put(keys, id, result)))), Committed)


async def refuse(store: Store, id: str, mark: str, result: FleetResult, remember_ms: int) -> bool:
    """Mark a command as refused at a component; return False when it was begun or refused before.

    A result that another key has under the same command id stays unchanged.
    """
    keys = store.keys
    key, results = fleet_keys.fleet_executed(keys, result.component, mark), fleet_keys.fleet_results(keys, id)
    guarded = Commit((Absent(key),), (("SET", key, "1", "PX", remember_ms),))
    commit = operation("HSETNX", results, result.component, _encode(result))
    expiring = operation("PEXPIRE", results, RESULTS_MS)
    return isinstance(await store.commit(join((guarded, commit, expiring))), Committed)


def put_result(keys: Keys, id: str, result: FleetResult) -> Commit:
    """Write a result that has arrived from a component on another store."""
    return _put(keys, id, result)


def finish(keys: Keys, id: str, result: FleetResult) -> Commit:
    """Write the result of a command that was begun."""
    return join((operation("HDEL", fleet_keys.fleet_executing(keys, result.component), id), _put(keys, id, result)))


async def load_results(store: Store, id: str) -> dict[str, FleetResult]:
    """Return the results of a command by component."""
    return _decode_all(await store.execute("HGETALL", fleet_keys.fleet_results(store.keys, id)))


async def load_executing(store: Store, component: str) -> dict[str, FleetResult]:
    """Return the commands that a component had begun when it ended, by their ids."""
    return _decode_all(await store.execute("HGETALL", fleet_keys.fleet_executing(store.keys, component)))


def _put(keys: Keys, id: str, result: FleetResult) -> Commit:
    key = fleet_keys.fleet_results(keys, id)
    return join((operation("HSET", key, result.component, _encode(result)), operation("PEXPIRE", key, RESULTS_MS)))


def _encode(result: FleetResult) -> str:
    return msgspec.json.encode(result).decode()


def _decode_all(stored: Mapping[str, str]) -> dict[str, FleetResult]:
    fleet_results = {}
    for name, text in stored.items():
        try:
            fleet_results[name] = msgspec.json.decode(text, type=FleetResult)
        except (msgspec.DecodeError, RecursionError):
            continue
    return fleet_results
