"""Leases of instances: each holds one under its name; the register also lists those without one."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, Holds, join, operation
from edge.store.keys import GROUP

LIFETIME_MS = 4000
"""How long a lease lasts after its last renewal."""


class Membership(Struct, frozen=True):
    """One reading: whether we hold our lease, registered instances, publishers, instances without a lease."""

    mine: bool
    members: Mapping[str, set[str]]
    publishers: Mapping[str, str | None]
    gone: frozenset[str]


async def acquire(store: Store, consumer: str, token: str) -> str | None:
    """Acquire the lease of a free name; return the token of its holder when it is not free."""
    key = store.keys.lease_instance(consumer)
    commit = Commit((Absent(key),), (("SET", key, token, "PX", LIFETIME_MS),))
    while not isinstance(await store.commit(commit), Committed):
        holder: str | None = await store.execute("GET", key)
        if holder is not None:
            return None if holder == token else holder
    return None


async def take_over(store: Store, consumer: str, token: str, former: str) -> bool:
    """Take the lease of a process that is surely dead; return False when another instance was faster."""
    key = store.keys.lease_instance(consumer)
    commit = Commit((Holds(key, former),), (("SET", key, token, "PX", LIFETIME_MS),))
    return isinstance(await store.commit(commit), Committed)


async def renew(store: Store, consumer: str, token: str) -> bool:
    """Renew a lease; return False when it is no longer ours."""
    key = store.keys.lease_instance(consumer)
    commit = Commit((Holds(key, token),), (("PEXPIRE", key, LIFETIME_MS),))
    return isinstance(await store.commit(commit), Committed)


async def release(store: Store, consumer: str, token: str) -> None:
    """Release a lease if it is still ours."""
    key = store.keys.lease_instance(consumer)
    await store.commit(Commit((Holds(key, token),), (("DEL", key),)))


async def register(store: Store, scopes: Iterable[str], consumer: str) -> None:
    """Register an instance for scopes, so that its work is found when its lease has expired."""
    await store.commit(join(operation("SADD", store.keys.instances(scope), consumer) for scope in scopes))


async def unregister(store: Store, scopes: Sequence[str], consumer: str) -> None:
    """Remove an instance that left no work from the register. The caller holds its lease."""
    # Without a consumer group the consumer cannot be deleted: then the name stays on the register and is found again.
    deleted = [operation("XGROUP", "DELCONSUMER", store.keys.sfc_work(scope), GROUP, consumer) for scope in scopes]
    forgotten = [operation("SREM", store.keys.instances(scope), consumer) for scope in scopes]
    await store.commit(join((*deleted, *forgotten)))


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
    others = sorted(set().union(*members.values(), filter(None, publishers.values())) - {store.consumer})
    held = await store.read([("EXISTS", keys.lease_instance(each)) for each in others])
    gone = frozenset(each for each, is_held in zip(others, held, strict=True) if not is_held)
    return Membership(mine == token, members, publishers, gone)


async def unregistered(store: Store, scope: str, consumers: Sequence[str]) -> list[str]:
    """Return the consumers among these that are not registered for the scope and hold no lease."""
    registered = await store.execute("SMEMBERS", store.keys.instances(scope))
    unknown = [each for each in consumers if each not in registered and each != store.consumer]
    held = await store.read([("EXISTS", store.keys.lease_instance(each)) for each in unknown])
    return [each for each, is_held in zip(unknown, held, strict=True) if not is_held]


async def become_publisher(store: Store, scope: str) -> bool:
    """Set this instance as publisher of a scope that has none; return False when another was faster."""
    key = store.keys.lease_publisher(scope)
    former = await store.execute("GET", key)
    guards = (Holds(key, former), Absent(store.keys.lease_instance(former))) if former else (Absent(key),)
    return isinstance(await store.commit(Commit(guards, (("SET", key, store.consumer),))), Committed)


async def release_publisher(store: Store, scopes: Iterable[str]) -> None:
    """Release the publisher role of each scope: another instance may take it at once."""
    for scope in scopes:
        key = store.keys.lease_publisher(scope)
        await store.commit(Commit((Holds(key, store.consumer),), (("DEL", key),)))
