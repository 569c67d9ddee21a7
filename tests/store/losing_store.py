"""A store that loses commits, for tests of what an outage leaves undone or unknown."""

import enum
from collections.abc import Iterable, Iterator

from edge.foundation.errors import Unavailable
from edge.store.client import Store
from edge.store.commit import Commit, CommitResult


class Loss(enum.Enum):
    """What of a commit is lost."""

    REQUEST = enum.auto()
    """It is not carried out."""
    REPLY = enum.auto()
    """It is carried out; its caller does not learn that."""


class LosingStore(Store):
    """A store on the connections of another one with commits that are lost."""

    def __init__(self, store: Store, losses: Iterable[Loss | None]) -> None:
        """Lose the commits to come, one after the other; after the last loss none is lost."""
        vars(self).update(vars(store))
        self.losses: Iterator[Loss | None] = iter(losses)

    async def commit(self, commit: Commit) -> CommitResult:
        """Commit, unless the request is lost.

        Raises Unavailable at each loss.
        """
        loss = next(self.losses, None)
        if loss is Loss.REQUEST:
            raise Unavailable("the request is lost")
        result = await super().commit(commit)
        if loss is Loss.REPLY:
            raise Unavailable("the reply is lost")
        return result
