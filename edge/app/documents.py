"""What a feature does with its documents of station files: reads them from a file, and keeps them in a store.

A feature declares each kind as `DocumentKind`; what its location returns has the methods of `Documents`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from edge.foundation.instant import Clock
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed


class Described(Struct, frozen=True):
    """The content of an object as JSON values, and its file below the folder; a resource has no content.

    `folder` is where the file of a document is below the folder of its kind, such as `stopped`: a state and no content.
    """

    content: Any = None
    file: str = ""
    folder: str = ""


class GuardedStore(Struct, frozen=True):
    """A store that is written only while a guard holds, with the clock for what is written."""

    store: Store
    clock: Clock
    guard: Commit = NOTHING

    async def holds(self) -> bool:
        """Return whether the guard holds. Raises Unavailable."""
        return isinstance(await self.store.commit(self.guard), Committed)


class Documents(Protocol):
    """The documents of one kind; what works with the store raises Unavailable."""

    @property
    def most(self) -> int | None:
        """The most that a store takes; None without a limit."""

    async def prepare(self) -> None:
        """Load what is needed to read files and to write their documents."""

    def read(self, data: object, folders: Sequence[str]) -> tuple[Mapping[str, Described], Sequence[str]]:
        """Return the documents of a file by their ids, and all faults; `folders` are those below that of the kind."""

    async def load(self, store: Store) -> Mapping[str, Described]:
        """Return those of a store by their ids."""

    async def mark(self, store: Store) -> object:
        """Return what changes with those of a store."""

    async def put(self, target: GuardedStore, id: str, described: Described) -> bool:
        """Write one; return False without a write when the guard does not hold. Raises Refused for a fault."""

    async def delete(self, target: GuardedStore, id: str) -> bool:
        """Delete one; return False without a write when the guard does not hold."""


def decoded_or_text(text: str) -> Any:
    """Return the JSON values of a stored text; one that cannot be read differs from every file."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
