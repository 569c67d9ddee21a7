"""Begun starts that have certainly not left this process; the record outlives a failover, which opens a new store.

The begun mark of a start is committed before the start is sent. Until then the start is held: when the replicas do not
confirm the mark, when the primary changes, or when the broker is gone, this process knows that it has sent nothing.
What another process has marked may have left.
"""

from typing import Final

from edge.model.cloudevent import new_id

_SEPARATOR: Final = "/"
_MOST_HELD: Final = 10_000


class HeldStarts:
    """The starts that this process has marked, or is about to mark, and has not sent; the newest 10,000.

    A start that is forgotten beyond the limit counts as one that may have left.

    Example: `held.hold(id)` before `Begun(id, held.mark("g1"))` is committed, `held.release(id)` before it is sent.
    """

    def __init__(self, most: int = _MOST_HELD) -> None:
        self._most = most
        self._process = new_id()
        self._ids: dict[str, None] = {}

    def __contains__(self, command_id: str) -> bool:
        """Return whether the start of a command is held."""
        return command_id in self._ids

    def hold(self, command_id: str) -> None:
        """Record that the start of a command has not left; forget the oldest beyond the limit."""
        self._ids[command_id] = None
        if len(self._ids) > self._most:
            del self._ids[next(iter(self._ids))]

    def release(self, command_id: str) -> bool:
        """Record that the start of a command may be sent now; return whether it was held."""
        was_held = command_id in self._ids
        self._ids.pop(command_id, None)
        return was_held

    def mark(self, generation_id: str) -> str:
        """Return the mark of the starts of this process in a generation of the store; "" without Sentinel."""
        return f"{generation_id}{_SEPARATOR}{self._process}"

    def may_have_left(self, mark: str, command_id: str) -> bool:
        """Return whether a start with this begun mark may have been sent; an empty mark is none."""
        is_ours = mark.rpartition(_SEPARATOR)[2] == self._process
        return mark != "" and not (is_ours and command_id in self)


def generation_of(mark: str) -> str:
    """Return the generation of a mark; empty for one without Sentinel, also of an earlier release."""
    return mark.rpartition(_SEPARATOR)[0]
