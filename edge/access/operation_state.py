"""Decides the states of operations: pure functions from an operation, an event and an instant to the next operation."""

from datetime import datetime, timedelta
from typing import Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from edge.model.operation import Operation, OperationState

INTERRUPTED: Final = "interrupted"
"""The error of an operation whose owner died."""


class Claim(Struct, frozen=True):
    """An instance begins it; it owns it until an instant."""

    owner: str
    until: int


class Renew(Struct, frozen=True):
    """Its owner lives, and reports the present stage."""

    owner: str
    until: int
    text: str = ""


class Finish(Struct, frozen=True):
    """Its owner has completed it, or it failed with an error."""

    owner: str
    result: str = ""
    error: str = ""


class Cancel(Struct, frozen=True):
    """A person cancels it: at once while it waits, else its owner ends it."""

    by: str


class Interrupt(Struct, frozen=True):
    """Nothing but time: its owner may be dead."""


OperationEvent: TypeAlias = Claim | Renew | Finish | Cancel | Interrupt


def transition(operation: Operation, event: OperationEvent, now: int) -> Operation | None:
    """Return the operation after an event; None when the event is not possible in its state."""
    state = operation.state
    match event:
        case Claim(owner, until) if state is OperationState.SCHEDULED and operation.due <= now:
            return replace(operation, state=OperationState.RUNNING, owner=owner, until=until, started=now)
        case Renew(owner, until, text) if state is OperationState.RUNNING and operation.owner == owner:
            return replace(operation, until=until, text=text)
        case Finish(owner, result, error) if state is OperationState.RUNNING and operation.owner == owner:
            if operation.cancelled_by and error:
                return _ended(operation, OperationState.CANCELLED, now)
            ended = _ended(operation, OperationState.FAILED if error else OperationState.DONE, now)
            return replace(ended, result=result, error=error)
        case Cancel(by) if state is OperationState.SCHEDULED:
            return replace(_ended(operation, OperationState.CANCELLED, now), cancelled_by=by)
        case Cancel(by) if state is OperationState.RUNNING:
            return replace(operation, cancelled_by=by)
        case Interrupt() if state is OperationState.RUNNING and (operation.until or 0) <= now:
            return replace(_ended(operation, OperationState.FAILED, now), error=INTERRUPTED)
        case Claim() | Renew() | Finish() | Cancel() | Interrupt():
            return None
        case _:
            assert_never(event)


def next_at(time_of_day: str, now: datetime) -> datetime:
    """Return the next instant at which clocks of the zone of `now` show HH:MM. Raises ValueError for another form."""
    at = datetime.strptime(time_of_day, "%H:%M").time()  # noqa: DTZ007 - a time of day
    today = now.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today if today > now else today + timedelta(days=1)


def _ended(operation: Operation, state: OperationState, now: int) -> Operation:
    return replace(operation, state=state, ended=now, until=None)
