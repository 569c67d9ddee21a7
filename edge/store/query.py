"""Queries of the store, several of which share one round trip, and the values of their replies.

A few commands return texts or flat lists where callers expect numbers, booleans or fields.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from edge.store.connection import Argument, ReplyError, error_of_reply

_Fields = dict[str, str]
_RawEntry = tuple[str, Sequence[str] | None]


def shape(command: str, reply: Any) -> Any:
    """Return the value of a reply in RESP3. As in redis-py, a stream of XREAD has a list of one batch."""
    shaped = _SHAPES.get(command)
    return reply if shaped is None else shaped(reply)


def _entries(raw: Iterable[_RawEntry]) -> list[tuple[str, _Fields]]:
    """Return entries with their fields; a deleted one has none."""
    found = []
    for entry_id, flat in raw:
        flat_fields = iter(flat or ())
        found.append((entry_id, dict(zip(flat_fields, flat_fields, strict=True))))
    return found


def _streams(reply: Mapping[str, Iterable[_RawEntry]] | None) -> dict[str, list[list[tuple[str, _Fields]]]]:
    return {stream: [_entries(raw)] for stream, raw in (reply or {}).items()}


def _claimed(reply: Sequence[Any]) -> list[Any]:
    start, claimed, *deleted = reply
    return [start, _entries(claimed), *deleted]


class _InfoFields(Mapping[str, str]):
    """The fields of an INFO reply, looked up in its text: an idle gateway reads five of a hundred each second."""

    def __init__(self, text: str) -> None:
        self._text = f"\r\n{text}\r\n"

    def __getitem__(self, name: str) -> str:
        _, found, rest = self._text.partition(f"\r\n{name}:")
        if not found:
            raise KeyError(name)
        return rest[: rest.index("\r\n")]

    def __iter__(self) -> Iterator[str]:
        return (line.partition(":")[0] for line in self._text.split("\r\n") if ":" in line)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_SHAPES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "HEXISTS": bool,
    "INFO": _InfoFields,
    "SMEMBERS": set,
    "TIME": lambda reply: (int(reply[0]), int(reply[1])),
    "XAUTOCLAIM": _claimed,
    "XRANGE": _entries,
    "XREAD": _streams,
    "XREADGROUP": _streams,
    "XREVRANGE": _entries,
}


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
        for store_query in queries:
            end = start + len(store_query.commands)
            self._replies[id(store_query)] = replies[start:end]
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
