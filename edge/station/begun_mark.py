"""The begun mark of a start: the process that committed it, and the generation of the store in which it did."""

from edge.model.cloudevent import new_id
from edge.station.equipment import Begin

_SEPARATOR = "/"
_MOST_RELEASED = 10_000


class ReleasedStarts:
    """The begun commands whose start this process may have sent, each until it has ended; the newest 10,000."""

    def __init__(self, most: int = _MOST_RELEASED) -> None:
        self._most = most
        self._ids: dict[str, None] = {}

    def __contains__(self, command_id: str) -> bool:
        """Return whether the start of a command may have been sent."""
        return command_id in self._ids

    def add(self, command_id: str) -> None:
        """Record that a start may be sent; forget the oldest beyond the limit."""
        self._ids[command_id] = None
        if len(self._ids) > self._most:
            del self._ids[next(iter(self._ids))]

    def discard(self, command_id: str) -> None:
        """Forget a command that has an answer or a stop."""
        self._ids.pop(command_id, None)


def mark_of_process(generation_id: str) -> str:
    """Return a unique mark for the starts of this process; without Sentinel there is no generation."""
    return f"{generation_id}{_SEPARATOR}{new_id()}"


def begun_again(found: str, own: str) -> Begin:
    """Return the answer for a start that is marked already: LOST where the mark is of another generation than ours."""
    return Begin.AGAIN if _generation_of(found) == _generation_of(own) else Begin.LOST


def _generation_of(mark: str) -> str:
    """Return the generation of a mark; empty for one without Sentinel, also of an earlier release."""
    return mark.rpartition(_SEPARATOR)[0]
