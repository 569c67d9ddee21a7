"""Settings that are kept by name, as JSON, under one revision: the rules of the MES, and definitions of tags."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from edge.store.client import Store
from edge.store.commit import Commit, at_revision, fields, join, spread
from edge.store.keys import Keys

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
