"""The gateways on a store: the lease of each under its name, its OPC UA server, and the identity of the store.

The identity is made once, and kept by a backup.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, Guard, Holds, join, operation
from edge.store.keys import GROUP, Keys
from edge.store.lease_watch import lease_value, parse_lease


class Membership(Struct, frozen=True):
    """One reading: the value of our lease, registered instances, publishers, and the ended leases with their values.

    `mine` is None when we do not hold our lease.
    """

    mine: str | None
    members: Mapping[str, set[str]]
    publishers: Mapping[str, str | None]
    gone: Mapping[str, str | None]


async def acquire(store: Store, consumer: str, token: str, former: str | None = None) -> str | None:
    """Acquire the lease of a free name, or one whose value is `former`; return the value of another holder's lease."""
    key = store.keys.lease_instance(consumer)
    while True:
        commit, sent_at = (
            Commit((unchanged(key, former),), (("SET", key, lease_value(token)),)),
            store.own_lease.clock(),
        )
        if isinstance(await store.commit_here(commit), Committed):
            if consumer == store.consumer:
                store.own_lease.note_renewed(sent_at)
            return None
        found: str | None = await store.execute("GET", key)
        if found is not None:
            return None if parse_lease(found).token == token else found
        former = None


async def renew(store: Store, consumer: str, token: str, value: str) -> str | None:
    """Renew a lease whose value is `value`; return its next value, None when it is no longer ours.

    Where the reply to the last renewal was lost, the stored value is another one of ours.
    """
    key = store.keys.lease_instance(consumer)
    while True:
        renewed, sent_at = lease_value(token), store.own_lease.clock()
        if isinstance(await store.commit_here(Commit((Holds(key, value),), (("SET", key, renewed),))), Committed):
            store.own_lease.note_renewed(sent_at)
            return renewed
        found = await store.execute("GET", key)
        if found is None or parse_lease(found).token != token:
            return None
        value = found


async def release(store: Store, consumer: str, token: str) -> None:
    """Release a lease if it is still ours."""
    key = store.keys.lease_instance(consumer)
    while (found := await store.execute("GET", key)) is not None and parse_lease(found).token == token:
        if isinstance(await store.commit_here(Commit((Holds(key, found),), (("DEL", key),))), Committed):
            return


async def register(store: Store, scopes: Iterable[str], consumer: str) -> None:
    """Register an instance for scopes, so that its work is found when its lease has ended."""
    await store.commit_here(join(operation("SADD", store.keys.instances(scope), consumer) for scope in scopes))


async def has_several(store: Store, scope: str) -> bool:
    """Return whether more than one instance is registered for a scope; a killed one stays until its take-over."""
    return int(await store.execute("SCARD", store.keys.instances(scope))) > 1


async def unregister(store: Store, scopes: Sequence[str], consumer: str) -> None:
    """Remove an instance that left no work from the register. The caller holds its lease."""
    # Without a consumer group the consumer cannot be deleted: then the name stays on the register and is found again.
    deleted = [operation("XGROUP", "DELCONSUMER", store.keys.sfc_work(scope), GROUP, consumer) for scope in scopes]
    forgotten = [operation("SREM", store.keys.instances(scope), consumer) for scope in scopes]
    await store.commit_here(join((*deleted, *forgotten)))


async def read_membership(store: Store, scopes: Sequence[str], token: str) -> Membership:
    """Read the membership: one round trip while no other instance is registered, else two."""
    keys = store.keys
    (mine, *publishing), *registered = await store.read(
        [
            ("MGET", keys.lease_instance(store.consumer), *map(keys.lease_publisher, scopes)),
            *(("SMEMBERS", keys.instances(scope)) for scope in scopes),
        ]
    )
    members = dict(zip(scopes, registered, strict=True))
    publishers = dict(zip(scopes, publishing, strict=True))
    others = set().union(*members.values(), filter(None, publishers.values())) - {store.consumer}
    gone = await read_ended(store, others)
    is_ours = mine is not None and parse_lease(mine).token == token
    return Membership(mine if is_ours else None, members, publishers, gone)


async def read_values(store: Store, consumers: Iterable[str]) -> dict[str, str | None]:
    """Return the values of leases, None for an absent one."""
    names = sorted(consumers)
    values = await store.read([("GET", store.keys.lease_instance(name)) for name in names])
    return dict(zip(names, values, strict=True))


async def read_ended(store: Store, consumers: Iterable[str]) -> dict[str, str | None]:
    """Return the leases that have ended by the watch of this process, with their values.

    A process that looks for the first time sees none end for four seconds, except those that are absent.
    """
    return store.lease_watch.observe(await read_values(store, consumers))


async def unregistered(store: Store, scope: str, consumers: Sequence[str]) -> list[str]:
    """Return the consumers among these that are not registered for the scope and hold no lease."""
    registered = await store.execute("SMEMBERS", store.keys.instances(scope))
    unknown = [consumer for consumer in consumers if consumer not in registered and consumer != store.consumer]
    return sorted(await read_ended(store, unknown))


async def become_publisher(store: Store, scope: str, former: str | None, ended: str | None) -> bool:
    """Set this instance as publisher of a scope in place of a former one, whose lease has ended with a value.

    Return False when another was faster, or when the former one has renewed its lease.
    """
    key = store.keys.lease_publisher(scope)
    guards: list[Guard] = [Absent(key) if former is None else Holds(key, former)]
    if former is not None:
        guards.append(unchanged(store.keys.lease_instance(former), ended))
    return isinstance(await store.commit_here(Commit(tuple(guards), (("SET", key, store.consumer),))), Committed)


async def release_publisher(store: Store, scopes: Iterable[str]) -> None:
    """Release the publisher role of each scope: another instance may take it at once."""
    for scope in scopes:
        key = store.keys.lease_publisher(scope)
        await store.commit_here(Commit((Holds(key, store.consumer),), (("DEL", key),)))


def unchanged(key: str, value: str | None) -> Guard:
    """Return the guard that a lease still has a value, None: that it is still absent."""
    return Absent(key) if value is None else Holds(key, value)


def put_opcua_server(keys: Keys, gateway: str, text: str) -> Commit:
    """Write the server of a gateway."""
    return operation("HSET", keys.opcua_servers(), gateway, text)


def remove_opcua_server(keys: Keys, gateway: str) -> Commit:
    """Remove the server of a gateway."""
    return operation("HDEL", keys.opcua_servers(), gateway)


async def load_opcua_servers(store: Store) -> dict[str, str]:
    """Return the servers by gateway; those of gateways whose lease has ended are left out. Raises Unavailable."""
    found: dict[str, str] = await store.execute("HGETALL", store.keys.opcua_servers())
    ended = await read_ended(store, found)
    return {name: found[name] for name in sorted(found) if name not in ended}


async def load_identity(store: Store) -> str:
    """Return the identity of the store; make it when there is none. Raises Unavailable."""
    key = store.keys.identity()
    found: str | None = await store.execute("GET", key)
    if found is None:
        await store.commit(operation("SET", key, str(uuid.uuid4()), "NX"))
        found = await store.execute("GET", key)
    return found or ""
