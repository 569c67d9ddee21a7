"""Whether the store was filled from the station files: a mark that guards the commits of the filling."""

from enum import Enum

from edge.foundation.errors import SettingsError
from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Holds
from edge.store.keys import Keys


class FillState(Enum):
    """The mark: absent, 0 or 1."""

    ABSENT = None
    FILLING = "0"
    FILLED = "1"


async def load_state(store: Store) -> FillState:
    """Return the mark. Raises SettingsError for a value that no gateway writes."""
    key = store.keys.initialized()
    text: str | None = await store.execute("GET", key)
    try:
        return FillState(text)
    except ValueError:
        problem = Text.of("the key {key} of the store holds {text!r}; expected 0, 1 or no key", key=key, text=text)
        advice = Text.of(
            "Find out what wrote it. Then delete it: redis-cli DEL {key}. A store in use is not filled again.", key=key
        )
        raise SettingsError([problem], advice) from None


def begin(keys: Keys) -> Commit:
    """Mark the store as being filled; Stale when it has a mark."""
    return Commit((Absent(keys.initialized()),), (("SET", keys.initialized(), "0"),))


def while_filling(keys: Keys) -> Commit:
    """Return the guard that the store is being filled: a process that slept through the end writes nothing."""
    return Commit((Holds(keys.initialized(), "0"),))


def end(keys: Keys) -> Commit:
    """Mark the store as filled; Stale when it is not being filled."""
    return Commit((Holds(keys.initialized(), "0"),), (("SET", keys.initialized(), "1"),))


def skip(keys: Keys) -> Commit:
    """Mark a store that was in use before as filled; Stale when it has a mark."""
    return Commit((Absent(keys.initialized()),), (("SET", keys.initialized(), "1"),))
