"""The begun mark of a start: the process that committed it, and the generation of the store in which it did."""

from edge.model.cloudevent import new_id
from edge.station.equipment import Begin

_SEPARATOR = "/"


def mark_of_process(generation_id: str) -> str:
    """Return a unique mark for the starts of this process; without Sentinel there is no generation."""
    return f"{generation_id}{_SEPARATOR}{new_id()}"


def begun_again(found: str, own: str) -> Begin:
    """Return the answer for a start that is marked already: LOST where the mark is of another generation than ours."""
    return Begin.AGAIN if _generation_of(found) == _generation_of(own) else Begin.LOST


def _generation_of(mark: str) -> str:
    """Return the generation of a mark; empty for one without Sentinel, also of an earlier release."""
    return mark.rpartition(_SEPARATOR)[0]
