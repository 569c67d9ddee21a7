"""The job state machine of OPC 10031-4 as one table and one lookup."""

from collections.abc import Mapping
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType

from msgspec import Struct

from edge.foundation.text import Text
from edge.model.isa95 import LocalizedText, RelativePath, RelativePathElement, State

NAMESPACE = "http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/"


class JobState(IntEnum):
    """The top-level states, by their StateNumber (OPC 10031-4, table 6)."""

    NOT_ALLOWED_TO_START = 1
    ALLOWED_TO_START = 2
    RUNNING = 3
    INTERRUPTED = 4
    ENDED = 5
    ABORTED = 6


class SubState(Enum):
    """The sub-states we enter: their machine, name and number. Numbers start at 1 in every machine."""

    WAITING = ("Waiting", 1)
    READY = ("Ready", 2)
    LOADED = ("Loaded", 3)
    COMPLETED = ("Completed", 1)
    CLOSED = ("Closed", 2)
    HELD = ("Held", 1)
    SUSPENDED = ("Suspended", 2)


STATE_TEXTS: Mapping[JobState, Text] = MappingProxyType(
    {
        JobState.NOT_ALLOWED_TO_START: Text.of("NotAllowedToStart"),
        JobState.ALLOWED_TO_START: Text.of("AllowedToStart"),
        JobState.RUNNING: Text.of("Running"),
        JobState.INTERRUPTED: Text.of("Interrupted"),
        JobState.ENDED: Text.of("Ended"),
        JobState.ABORTED: Text.of("Aborted"),
    }
)
"""The states for people; the English form is the name of the standard."""
TEXT: Mapping[JobState, str] = MappingProxyType({state: text.id for state, text in STATE_TEXTS.items()})

SUBSTATE_MACHINE: Mapping[JobState, str] = MappingProxyType(
    {
        JobState.NOT_ALLOWED_TO_START: "NotAllowedToStartSubstates",
        JobState.ALLOWED_TO_START: "AllowedToStartSubstates",
        JobState.INTERRUPTED: "InterruptedSubstates",
        JobState.ENDED: "EndedSubstates",
    }
)


SUBSTATES: Mapping[JobState, tuple[SubState, ...]] = MappingProxyType(
    {
        JobState.NOT_ALLOWED_TO_START: (SubState.WAITING, SubState.READY, SubState.LOADED),
        JobState.ALLOWED_TO_START: (SubState.WAITING, SubState.READY, SubState.LOADED),
        JobState.INTERRUPTED: (SubState.HELD, SubState.SUSPENDED),
        JobState.ENDED: (SubState.COMPLETED, SubState.CLOSED),
    }
)


class JobStatus(Struct, frozen=True):
    """The state of a job, with the sub-state where that state has some."""

    state: JobState
    substate: SubState | None = None


class Cause(StrEnum):
    """The cause of a change: a method of the receiver by its BrowseName, or an event at the station."""

    STORE = "Store"
    STORE_AND_START = "StoreAndStart"
    START = "Start"
    REVOKE_START = "RevokeStart"
    UPDATE = "Update"
    PAUSE = "Pause"
    HOLD = "Hold"
    """An alarm pauses the job: the station does it by itself, without a method."""
    RESUME = "Resume"
    STOP = "Stop"
    ABORT = "Abort"
    CANCEL = "Cancel"
    CLEAR = "Clear"
    RUN = "Run"
    COMPLETE = "Complete"
    FAIL = "Fail"
    EXPIRE = "Expired"
    RESULT_UPDATE = "ResultUpdate"
    """The response changed and the state did not: an unknown outcome, its resolution, a late result."""


_INTERNAL = frozenset({Cause.HOLD, Cause.RUN, Cause.COMPLETE, Cause.FAIL, Cause.EXPIRE, Cause.RESULT_UPDATE})
METHODS = tuple(cause for cause in Cause if cause not in _INTERNAL)
"""The methods of ISA95JobOrderReceiverObjectType."""
ORDER_METHODS = frozenset({Cause.STORE, Cause.STORE_AND_START, Cause.UPDATE})
"""Those of them that take a job order; the others take its id."""
RESPONSE_METHODS = ("RequestJobResponseByJobOrderID", "RequestJobResponseByJobOrderState")
"""The methods of ISA95JobResponseProviderObjectType."""


class Removed(Enum):
    """The removal of a stored job from the list."""

    REMOVED = "removed"


REMOVED = Removed.REMOVED

_NEW = {
    Cause.STORE: JobStatus(JobState.NOT_ALLOWED_TO_START, SubState.READY),
    Cause.STORE_AND_START: JobStatus(JobState.ALLOWED_TO_START, SubState.READY),
}
NEW: Mapping[Cause, JobStatus] = MappingProxyType(_NEW)


def timed_status(status: JobStatus, *, is_early: bool) -> JobStatus:
    """Return the status of a job before its start: Waiting while its StartTime is to come, else as it is."""
    if is_early and status.substate is SubState.READY:
        return JobStatus(status.state, SubState.WAITING)
    return status


_NOT_ALLOWED = _NEW[Cause.STORE]
_ALLOWED = _NEW[Cause.STORE_AND_START]
_RUNNING = JobStatus(JobState.RUNNING)
_HELD = JobStatus(JobState.INTERRUPTED, SubState.HELD)
_SUSPENDED = JobStatus(JobState.INTERRUPTED, SubState.SUSPENDED)
_COMPLETED = JobStatus(JobState.ENDED, SubState.COMPLETED)
_CLOSED = JobStatus(JobState.ENDED, SubState.CLOSED)
_ABORTED = JobStatus(JobState.ABORTED)


class StateTransition(Struct, frozen=True):
    """One row of the table; `number` is the transition number of OPC 10031-4 table 7, 0 for the removal of an entry."""

    number: int
    target: JobStatus | Removed


TRANSITIONS: Mapping[tuple[JobState, Cause], StateTransition] = MappingProxyType(
    {
        (JobState.NOT_ALLOWED_TO_START, Cause.UPDATE): StateTransition(1, _NOT_ALLOWED),
        (JobState.NOT_ALLOWED_TO_START, Cause.START): StateTransition(2, _ALLOWED),
        (JobState.ALLOWED_TO_START, Cause.REVOKE_START): StateTransition(3, _NOT_ALLOWED),
        (JobState.ALLOWED_TO_START, Cause.UPDATE): StateTransition(4, _ALLOWED),
        (JobState.ALLOWED_TO_START, Cause.RUN): StateTransition(5, _RUNNING),
        (JobState.RUNNING, Cause.PAUSE): StateTransition(6, _SUSPENDED),
        (JobState.RUNNING, Cause.HOLD): StateTransition(6, _HELD),
        (JobState.RUNNING, Cause.STOP): StateTransition(7, _CLOSED),
        (JobState.RUNNING, Cause.COMPLETE): StateTransition(7, _COMPLETED),
        (JobState.RUNNING, Cause.ABORT): StateTransition(8, _ABORTED),
        (JobState.RUNNING, Cause.FAIL): StateTransition(8, _ABORTED),
        (JobState.INTERRUPTED, Cause.ABORT): StateTransition(9, _ABORTED),
        (JobState.INTERRUPTED, Cause.FAIL): StateTransition(9, _ABORTED),
        (JobState.INTERRUPTED, Cause.RESUME): StateTransition(10, _RUNNING),
        (JobState.INTERRUPTED, Cause.STOP): StateTransition(11, _CLOSED),
        (JobState.NOT_ALLOWED_TO_START, Cause.ABORT): StateTransition(12, _ABORTED),
        (JobState.ALLOWED_TO_START, Cause.ABORT): StateTransition(13, _ABORTED),
        (JobState.ALLOWED_TO_START, Cause.FAIL): StateTransition(13, _ABORTED),
        (JobState.NOT_ALLOWED_TO_START, Cause.CANCEL): StateTransition(0, REMOVED),
        (JobState.ALLOWED_TO_START, Cause.CANCEL): StateTransition(0, REMOVED),
        (JobState.ENDED, Cause.CLEAR): StateTransition(0, REMOVED),
        (JobState.ABORTED, Cause.CLEAR): StateTransition(0, REMOVED),
        (JobState.ENDED, Cause.EXPIRE): StateTransition(0, REMOVED),
        (JobState.ABORTED, Cause.EXPIRE): StateTransition(0, REMOVED),
    }
)


_TRANSITION_CAUSES = frozenset(cause for (_, cause), row in TRANSITIONS.items() if row.number)


def next_status(state: JobState, cause: Cause) -> JobStatus | Removed | None:
    """Return the status to which `cause` leads from `state`; None when it is not allowed there."""
    row = TRANSITIONS.get((state, cause))
    return row.target if row else None


def is_transition(cause: Cause) -> bool:
    """Return whether a cause is a transition of the state machine, which has an event; storing and removing are not."""
    return cause in _TRANSITION_CAUSES


def has_ended(status: JobStatus) -> bool:
    """Return whether a job is in one of the two EndStates."""
    state = status.state
    return state is JobState.ENDED or state is JobState.ABORTED


RESPONSE_STATES = (JobState.RUNNING, JobState.INTERRUPTED, JobState.ENDED, JobState.ABORTED)
"""The states of jobs that have a response."""


def has_response(status: JobStatus) -> bool:
    """Return whether a job in this state must be listed in JobOrderResponseList (OPC 10031-4, 6.2.7.1)."""
    return status.state in RESPONSE_STATES


def substate_path(machine: str) -> RelativePath:
    """Return the path from an instance of the receiver type to one of its sub-state machines."""
    name = f"nsu={NAMESPACE};{machine}"
    return RelativePath(
        elements=(RelativePathElement(reference_type_id="i=47", include_subtypes=True, target_name=name),)
    )


def state_entries(status: JobStatus) -> tuple[State, ...]:
    """Return a status as ISA95StateDataType[]: the top level first, then the sub-state with its browse path."""
    top = State(state_text=LocalizedText(text=TEXT[status.state], locale="en"), state_number=status.state)
    if status.substate is None:
        return (top,)
    name, number = status.substate.value
    path = substate_path(SUBSTATE_MACHINE[status.state])
    return (
        top,
        State(state_text=LocalizedText(text=name, locale="en"), state_number=number, browse_path=path),
    )
