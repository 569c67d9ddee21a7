"""Queries of the store; several of them share one round trip."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from edge.store.errors import error_of_reply
from edge.store.pipeline import Argument, ReplyError
from edge.store.replies import shape

_T = TypeVar("_T")


class StoreQuery(Struct, Generic[_T], frozen=True):
    """Commands that read, and the function that returns the value of their replies."""

    commands: Sequence[Sequence[Argument]]
    value: Callable[..., _T]


def query(value: Callable[..., _T], *command: Argument) -> StoreQuery[_T]:
    """Return a query of one command."""
    return StoreQuery((command,), value)


class Replies:
    """The replies to queries that shared one round trip; the value of each is made when it is asked for."""

    def __init__(self, queries: Sequence[StoreQuery[Any]], replies: Sequence[Any]) -> None:
        # Kept, as their ids are the keys of the replies.
        self._queries = queries
        self._replies: dict[int, Sequence[Any]] = {}
        start = 0
        for each in queries:
            end = start + len(each.commands)
            self._replies[id(each)] = replies[start:end]
            start = end

    def value(self, asked: StoreQuery[_T]) -> _T:
        """Return the value of one of the queries; raise its error, which concerns no other query."""
        return asked.value(*values_of(asked.commands, self._replies[id(asked)]))


def values_of(commands: Sequence[Sequence[Argument]], replies: Sequence[Any]) -> list[Any]:
    """Return the values of the replies to commands; raise the error if one of them is an error."""
    return [value_of(str(command[0]), reply) for command, reply in zip(commands, replies, strict=True)]


def value_of(command: str, reply: Any) -> Any:
    """Return the value of a reply; raise the error if it is one."""
    if isinstance(reply, ReplyError):
        raise error_of_reply(str(reply))
    return shape(command, reply)
