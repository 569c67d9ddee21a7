"""The lease of the connection to equipment: one instance connects to it, the others pass their commands to that one.

It lasts as long as the lease of its instance. Each holder has a list of its own for what is passed to it, and removes a
command after it has taken it. The list is dropped with the connection: the next one begins with the open commands of
the runs.
"""

from collections.abc import Collection, Iterable

import msgspec
from msgspec import Struct

from edge.features.openprotocol import keys as openprotocol_keys
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Guard, HashField, Revision
from edge.store.instance_leases import unchanged

_REVISION = "rev"
_HOLDER = "gateway:"
_ADVICE = "A gateway of another version may have written it: update this one. Or end that gateway."


class LeaseHolder(Struct, frozen=True, array_like=True):
    """The instance that connects to equipment, the scopes it serves, and whether it is connected."""

    instance: str
    scopes: tuple[str, ...]
    is_connected: bool = False


class LeaseView(Struct, frozen=True):
    """One reading of the leases at a place.

    `holder`: another instance at work that serves one of our scopes, `text` what it has written. `ours` is what this
    instance has written. `replaced`: the instances whose leases end with a take, `ended`: those of them that are not
    at work, with the values of their ended leases.
    """

    revision: str = "0"
    ours: str | None = None
    holder: LeaseHolder | None = None
    text: str | None = None
    replaced: frozenset[str] = frozenset()
    ended: tuple[tuple[str, str | None], ...] = ()


class EquipmentLeases(Struct, frozen=True):
    """The leases of equipment at a place in a store, as this instance, which serves some scopes, sees them."""

    store: Store
    place: str
    scopes: frozenset[str]

    @property
    def key(self) -> str:
        """The key of the leases."""
        return openprotocol_keys.lease_equipment(self.store.keys, self.place)

    def passed(self, instance: str) -> str:
        """Return the key of the commands that are passed to an instance."""
        return openprotocol_keys.passed_commands(self.store.keys, instance, self.place)

    def holder(self, *, is_connected: bool = False) -> LeaseHolder:
        """Return this instance as holder."""
        return LeaseHolder(self.store.consumer, tuple(sorted(self.scopes)), is_connected)


def leases_at(store: Store, scopes: Collection[str], place: str) -> EquipmentLeases:
    """Return the leases of equipment at a place, for an instance that serves these scopes."""
    return EquipmentLeases(store, place, frozenset(scopes))


async def load(leases: EquipmentLeases) -> LeaseView:
    """Return who holds the lease, a connected one first.

    Raises Unavailable where an instance at work has written what cannot be read: it may be connected.
    """
    store = leases.store
    stored: dict[str, str] = await store.execute("HGETALL", leases.key)
    texts = {name.removeprefix(_HOLDER): text for name, text in stored.items() if name.startswith(_HOLDER)}
    ours = texts.pop(store.consumer, None)
    read = {name: _holder_of(text) for name, text in texts.items()}
    others = {
        name
        for name, lease_holder in read.items()
        if lease_holder is None or not leases.scopes.isdisjoint(lease_holder.scopes)
    }
    ended = await instance_leases.read_ended(store, others)
    lease_holders: list[LeaseHolder] = []
    for name in sorted(others - ended.keys()):
        holder = read[name]
        if holder is None:
            raise Unavailable(
                Text.of("the lease of gateway {name} at {place} cannot be read", name=name, place=leases.place), _ADVICE
            )
        lease_holders.append(holder)
    first = min(lease_holders, key=lambda lease_holder: not lease_holder.is_connected, default=None)
    return LeaseView(
        revision=stored.get(_REVISION, "0"),
        ours=ours,
        holder=first,
        text=texts[first.instance] if first else None,
        replaced=frozenset(others),
        ended=tuple(sorted(ended.items())),
    )


def _holder_of(text: str) -> LeaseHolder | None:
    try:
        return msgspec.json.decode(text, type=LeaseHolder)
    except msgspec.DecodeError:
        return None


def text_of(holder: LeaseHolder) -> str:
    """Return a holder as the store has it."""
    return msgspec.json.encode(holder).decode()


async def take(leases: EquipmentLeases, seen: LeaseView) -> bool:
    """Take the lease as it was seen; return False when another instance was faster, or works again."""
    guards: list[Guard] = [Revision(leases.key, seen.revision)]
    guards += (unchanged(leases.store.keys.lease_instance(name), value) for name, value in seen.ended)
    return await _write(leases, guards, leases.holder(), seen.replaced)


async def update(leases: EquipmentLeases, before: str, after: LeaseHolder) -> bool:
    """Write whether this instance is connected; return False when another one has taken the lease.

    A holder that has just connected reads the open commands next: what was passed on before is dropped.
    """
    return await _write(leases, [_held(leases, before)], after)


async def _write(
    leases: EquipmentLeases, guards: Iterable[Guard], after: LeaseHolder, replaced: Collection[str] = ()
) -> bool:
    ends = tuple(_end_of(leases, name) for name in sorted(replaced))
    writes = (
        *(row for end in ends for row in end),
        ("HSET", leases.key, _HOLDER + after.instance, text_of(after)),
        ("HINCRBY", leases.key, _REVISION, 1),
        ("DEL", leases.passed(after.instance)),
    )
    return isinstance(await leases.store.commit(Commit(tuple(guards), writes)), Committed)


async def is_held(leases: EquipmentLeases, text: str) -> bool:
    """Return whether the lease is still ours as we have written it."""
    found: str | None = await leases.store.execute("HGET", leases.key, _HOLDER + leases.store.consumer)
    return found == text


async def release(leases: EquipmentLeases, text: str) -> None:
    """Release the lease if it is still ours."""
    writes = (*_end_of(leases, leases.store.consumer), ("HINCRBY", leases.key, _REVISION, 1))
    await leases.store.commit(Commit((_held(leases, text),), writes))


def _end_of(leases: EquipmentLeases, instance: str) -> tuple[tuple[str, ...], ...]:
    return ("HDEL", leases.key, _HOLDER + instance), ("DEL", leases.passed(instance))


def _held(leases: EquipmentLeases, text: str, instance: str = "") -> HashField:
    return HashField(leases.key, _HOLDER + (instance or leases.store.consumer), text)


async def pass_on(leases: EquipmentLeases, seen: LeaseView, command: Struct) -> bool:
    """Pass a command to the holder of the lease as it was seen; return False when that has changed meanwhile.

    One that waits there already takes the last place: repetitions do not add up.
    """
    if seen.holder is None or seen.text is None:
        return False
    key, text = leases.passed(seen.holder.instance), msgspec.json.encode(command).decode()
    commit = Commit((_held(leases, seen.text, seen.holder.instance),), (("LREM", key, 0, text), ("RPUSH", key, text)))
    return isinstance(await leases.store.commit(commit), Committed)


async def first_passed(leases: EquipmentLeases, wait_ms: int) -> str | None:
    """Return the first command that was passed to this instance, as it is stored; None when there is none in time.

    It stays where it is: a reply that is lost loses no command.
    """
    key = leases.passed(leases.store.consumer)
    text: str | None = await leases.store.wait("BLMOVE", key, key, "LEFT", "LEFT", f"{wait_ms / 1000:.3f}")
    return text


async def remove_passed(leases: EquipmentLeases, held: str, taken: str | None) -> bool:
    """Remove a command that was taken, None: none; return False when this instance has lost the lease."""
    key = leases.passed(leases.store.consumer)
    writes = () if taken is None else (("LREM", key, 1, taken),)
    return isinstance(await leases.store.commit(Commit((_held(leases, held),), writes)), Committed)
