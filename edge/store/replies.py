"""Converts replies: a few commands return texts or flat lists where callers expect numbers, booleans or fields."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

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
        each = iter(flat or ())
        found.append((entry_id, dict(zip(each, each, strict=True))))
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
