"""The values of replies: a few commands answer with texts or flat lists where callers want numbers, truth or fields."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

_Fields = dict[str, str]
_RawEntry = tuple[str, Sequence[str] | None]


def shape(command: str, reply: Any) -> Any:
    """Return the value of a reply in RESP3: a stream of XREAD has a list of its one batch of entries."""
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


def _info_fields(text: str) -> _Fields:
    """Return the fields of an INFO reply as texts; to convert them all is a ninth of what an idle gateway does."""
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


_SHAPES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "HEXISTS": bool,
    "INFO": _info_fields,
    "SMEMBERS": set,
    "TIME": lambda reply: (int(reply[0]), int(reply[1])),
    "XAUTOCLAIM": _claimed,
    "XRANGE": _entries,
    "XREAD": _streams,
    "XREADGROUP": _streams,
    "XREVRANGE": _entries,
}
