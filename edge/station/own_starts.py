"""Which begun starts have left this process, and which certainly have not; it outlives a failover, as no store does.

The begun mark of a start is committed before the start is sent. Until then the start is held: when the replicas do not
confirm the mark, when the primary changes, or when the broker is gone, this process knows that it has sent nothing.
What another process has marked may have left. A start that this process has sent has left, also where the next primary
lacks its mark.
"""

from typing import Final

from edge.model.cloudevent import new_id

_SEPARATOR: Final = "/"
_MOST_HELD: Final = 10_000


class OwnStarts:
    """The starts that this process has marked, or is about to mark, and has not sent, and those that it has sent.

    The newest 10,000 of each. A held start that is forgotten beyond the limit counts as one that may have left.

    Example: `held.hold(id)` before `Begun(id, held.mark("g1"))` is committed, `held.release(id)` before it is sent.
    """

    def __init__(self, most: int = _MOST_HELD) -> None:
        self._most = most
        self._process = new_id()
        self._ids: dict[str, str] = {}
        self._left: dict[str, str] = {}

    def __contains__(self, command_id: str) -> bool:
        """Return whether the start of a command is held."""
        return command_id in self._ids

    def hold(self, command_id: str) -> None:
        """Record that the start of a command has not left, unless it has; forget the oldest beyond the limit."""
        if command_id not in self._left:
            self._add(self._ids, command_id, "")

    def withhold(self, command_id: str) -> None:
        """Record that a start has not left although it was released."""
        self._left.pop(command_id, None)
        self._add(self._ids, command_id, "")

    def release(self, command_id: str, generation_id: str) -> bool:
        """Record that a start may be sent now, in a generation of the store; return whether it was held."""
        if command_id not in self._ids:
            return False
        del self._ids[command_id]
        self._add(self._left, command_id, generation_id)
        return True

    def has_left_before(self, command_id: str, generation_id: str) -> bool:
        """Return whether this process has sent a start in another generation; False for one that is forgotten."""
        return self._left.get(command_id, generation_id) != generation_id

    def _add(self, ids: dict[str, str], command_id: str, generation_id: str) -> None:
        ids[command_id] = generation_id
        if len(ids) > self._most:
            del ids[next(iter(ids))]

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
