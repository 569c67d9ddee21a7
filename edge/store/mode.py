"""The maintenance mode in the store: one for all gateways, and one for each; with the localised texts of people."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from edge.model.plant import DEFAULT_MESSAGE, Maintenance
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Guard, Holds, RedisCommand, join
from edge.store.keys import Keys

_OFF, _ON = "0", "1"
_EVERY = "*"
_MESSAGE = "Maintenance"


class StoredMode(Struct, frozen=True):
    """The modes of the store and of one gateway as they were read; None is off.

    `texts` are the values of their keys, which guard a commit that depends on them.
    """

    store: Maintenance | None
    gateway: Maintenance | None
    texts: tuple[tuple[str, str | None], ...]

    @property
    def guard(self) -> Commit:
        """Return the guard that neither mode was switched since."""
        return Commit(guards=tuple(_guard(*text) for text in self.texts))

    def depends_on(self, key: str) -> bool:
        """Return whether a key is one of the modes."""
        return any(key == text for text, _ in self.texts)


async def load(store: Store, gateway: str) -> StoredMode:
    """Read the mode of the store and that of a gateway; while both are off they have no details."""
    keys = store.keys
    names = (keys.mode(), keys.mode_of(gateway))
    texts = await store.execute("MGET", *names)
    if not any(map(_is_on, texts)):
        return StoredMode(None, None, tuple(zip(names, texts, strict=True)))
    # Read again together with the details: a mode that is switched off in between would seem to have none.
    texts, details, messages = await store.read(
        [
            ("MGET", *names),
            ("HMGET", keys.maintenance(), _EVERY, gateway),
            ("HMGET", keys.messages(), _MESSAGE, _message_field(gateway)),
        ]
    )
    modes = [_read(*text) for text in zip(texts, details, messages, strict=True)]
    return StoredMode(modes[0], modes[1], tuple(zip(names, texts, strict=True)))


def save(keys: Keys, before: StoredMode, gateway: str, mode: Maintenance | None) -> Commit:
    """Write the mode of a gateway, of all gateways where it names none; Stale when it was switched meanwhile."""
    key, text = before.texts[1 if gateway else 0]
    field, message = gateway or _EVERY, _message_field(gateway)
    switched = ("SET", key, _ON if mode else _OFF)
    if mode is None:
        rest: list[RedisCommand] = [("HDEL", keys.maintenance(), field), ("HDEL", keys.messages(), message)]
    else:
        rest = [
            ("HSET", keys.maintenance(), field, msgspec.json.encode(_without_message(mode)).decode()),
            ("HSET", keys.messages(), message, mode.message),
        ]
    return Commit((_guard(key, text),), (switched, *rest))


async def load_texts(store: Store) -> Mapping[str, str]:
    """Return the localised texts of people, by `[lang:]Name`."""
    texts: Mapping[str, str] = await store.execute("HGETALL", store.keys.localization())
    return texts


def save_texts(keys: Keys, texts: Mapping[str, str | None]) -> Commit:
    """Write localised texts by `[lang:]Name`; None removes one."""
    key = keys.localization()
    written = (("HDEL", key, name) if text is None else ("HSET", key, name, text) for name, text in texts.items())
    return join(Commit(operations=(row,)) for row in written)


def _is_on(text: str | None) -> bool:
    return text is not None and text != _OFF


def _read(text: str | None, details: str | None, message: str | None) -> Maintenance | None:
    """Return a mode; one that was switched on by hand, with a redis-cli, has no details."""
    if not _is_on(text):
        return None
    try:
        maintenance = msgspec.json.decode(details or "{}", type=Maintenance)
    except (msgspec.DecodeError, RecursionError):
        maintenance = Maintenance()
    return msgspec.structs.replace(maintenance, message=message or DEFAULT_MESSAGE)


def _guard(key: str, text: str | None) -> Guard:
    return Absent(key) if text is None else Holds(key, text)


def _without_message(mode: Maintenance) -> Maintenance:
    return msgspec.structs.replace(mode, message=DEFAULT_MESSAGE)


def _message_field(gateway: str) -> str:
    return f"{_MESSAGE}:{gateway}" if gateway else _MESSAGE
