"""The components that share the store, under the keys `discovery:`."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from edge.model.plant import Component, PluginState
from edge.store.client import Store
from edge.store.commit import Commit, join, operation, spread
from edge.store.keys import Keys

REMOVE_AFTER = "remove_after_s"
"""The setting how long a component without a heartbeat stays in the list."""
DEFAULT_REMOVE_AFTER_S = 30 * 24 * 3600
_LEAST_REMOVE_AFTER_S = 60
_MOST_DIGITS = 15
"""Of an instant in seconds."""
"""Several heartbeats: components that work would come and go."""


class KnownComponent(Struct, frozen=True):
    """A component as it is stored; `seen_s` is its last heartbeat, in seconds since the epoch."""

    component: Component
    seen_s: int
    token: str
    plugins: tuple[PluginState, ...]


class Holder(Struct, frozen=True):
    """The process that holds an id: its token, and its last heartbeat."""

    token: str
    seen_s: str


async def claim(store: Store, id: str, token: str) -> Holder | None:
    """Claim a free id; return its holder when it has one. Two processes cannot both claim it."""
    while not await store.execute("HSETNX", store.keys.discovery_tokens(), id, token):
        if (holder := await load_holder(store, id)) is not None:
            return holder
    return None


async def load_holder(store: Store, id: str) -> Holder | None:
    """Return the holder of an id."""
    keys = store.keys
    token, seen_s = await store.read([("HGET", keys.discovery_tokens(), id), ("HGET", keys.discovery_timestamps(), id)])
    return None if token is None else Holder(token, seen_s or "")


def take(keys: Keys, id: str, token: str) -> Commit:
    """Assign an id whose process has ended to another process."""
    return operation("HSET", keys.discovery_tokens(), id, token)


def put(keys: Keys, component: Component) -> Commit:
    """Write what a component is and how it is."""
    return operation("HSET", keys.discovery_components(), component.id, msgspec.json.encode(component).decode())


def put_plugins(keys: Keys, id: str, plugins: Sequence[PluginState]) -> Commit:
    """Write the state of the kinds of a component."""
    return operation("HSET", keys.discovery_plugins(), id, msgspec.json.encode(plugins).decode())


def touch(keys: Keys, id: str, now_s: int) -> Commit:
    """Write a heartbeat."""
    return operation("HSET", keys.discovery_timestamps(), id, now_s)


def remove(keys: Keys, ids: Sequence[str]) -> Commit:
    """Remove components from the list."""
    hashes = (
        keys.discovery_components(),
        keys.discovery_timestamps(),
        keys.discovery_tokens(),
        keys.discovery_plugins(),
    )
    return join(spread("HDEL", (key,), ids) for key in hashes)


async def load_all(store: Store) -> dict[str, KnownComponent]:
    """Return every component by its id; one that cannot be read is left out."""
    keys = store.keys
    components, seen, tokens, plugins = await store.read(
        [
            ("HGETALL", key)
            for key in (
                keys.discovery_components(),
                keys.discovery_timestamps(),
                keys.discovery_tokens(),
                keys.discovery_plugins(),
            )
        ]
    )
    known_components = {}
    for id, text in sorted(components.items()):
        try:
            component = msgspec.json.decode(text, type=Component)
            states = msgspec.json.decode(plugins.get(id, "[]"), type=tuple[PluginState, ...])
        except (msgspec.DecodeError, RecursionError):
            continue
        known_components[id] = KnownComponent(component, _seconds(seen.get(id)), tokens.get(id, ""), states)
    return known_components


async def load_settings(store: Store) -> Mapping[str, str]:
    """Return the settings of the list."""
    found: Mapping[str, str] = await store.execute("HGETALL", store.keys.discovery_settings())
    return found


def set_remove_after(keys: Keys, seconds: int) -> Commit:
    """Set how long a component without a heartbeat stays in the list."""
    return operation("HSET", keys.discovery_settings(), REMOVE_AFTER, seconds)


async def remove_outdated(store: Store, now_s: int) -> list[str]:
    """Remove the components that have shown no heartbeat for as long as the setting says; return their ids."""
    seen = await store.execute("HGETALL", store.keys.discovery_timestamps())
    limit_s = _seconds((await load_settings(store)).get(REMOVE_AFTER)) or DEFAULT_REMOVE_AFTER_S
    limit_s = max(limit_s, _LEAST_REMOVE_AFTER_S)
    gone = sorted(id for id, at in seen.items() if now_s - _seconds(at) > limit_s)
    if gone:
        await store.commit(remove(store.keys, gone))
    return gone


def _seconds(text: str | None) -> int:
    is_number = text is not None and text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and text else 0
