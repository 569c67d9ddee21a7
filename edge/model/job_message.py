"""The messages about jobs that this product adds: progress, late results, acknowledgements, the index of states."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edge.model.instant import Instant
from edge.model.isa95 import Payload, State
from edge.model.localized_text import AuthorText


class StepProgressV1(msgspec.Struct, frozen=True):
    """A step that was entered or left."""

    step: str
    active: bool


class StepProgress(StepProgressV1, frozen=True, omit_defaults=True):
    """A step that was entered or left; `title` is the one of its recipe, plain or by language."""

    title: AuthorText | UnsetType = UNSET


class CommandProgressV1(msgspec.Struct, frozen=True):
    """A command to equipment."""

    action: str
    phase: str
    attempt: int
    type_id: str


class CommandProgress(CommandProgressV1, frozen=True, omit_defaults=True):
    """A command to equipment; `title` is that of its action in the recipe, plain or by language."""

    title: AuthorText | UnsetType = UNSET


class JobProgress(msgspec.Struct, frozen=True):
    """The effect of decisions about a job: steps in the order in which they were left and entered, and commands.

    Example: {"job_order_id": "ORDER-1001", "at": "2026-11-26T16:42:05.385Z",
     "steps": [{"step": "Fit", "active": true}],
     "commands": [{"action": "tighten", "phase": "start", "attempt": 1, "type_id": "com.example.station.tighten.v1"}]}
    """

    job_order_id: str
    at: Instant
    steps: tuple[StepProgress, ...]
    commands: tuple[CommandProgress, ...]


class JobProgressV1(msgspec.Struct, frozen=True):
    """The data of a progress event of version 1; `at` is in milliseconds since the epoch.

    Example: {"job_id": "ORDER-1001", "at": 1795711325385, "steps": [{"step": "Fit", "active": true}], "commands":
     [{"action": "tighten", "phase": "start", "attempt": 1, "type_id": "com.example.station.tighten.v1"}]}
    """

    job_id: str
    at: int
    steps: tuple[StepProgressV1, ...]
    commands: tuple[CommandProgressV1, ...]


class LateResultEvent(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """A result that was kept without effect: the command that it answers, as far as known, and its data.

    Example: {"JobOrderID": "ORDER-1001", "CommandID": "ORDER-1001/c484278a-a63e-489f-869d-182372951b5d/tighten/1",
     "Source": "wrench", "Reason": "the time limit of the action was over", "Data": {"torque": 85.2}}
    """

    job_order_id: str = msgspec.field(default="", name="JobOrderID")
    command_id: str = msgspec.field(default="", name="CommandID")
    source: str
    """The equipment that reported it."""
    reason: str
    """The reason why no command waited for it."""
    data: Any = None
    """The result; as text where it was too long to be kept whole."""


class AcknowledgeCall(Payload, frozen=True, kw_only=True):
    """The acknowledgement that the MES has the results of these ended job orders (not part of the standard).

    Example: {"JobOrderIDs": ["ORDER-1001", "ORDER-1002"]}
    """

    job_order_ids: tuple[str, ...] = msgspec.field(name="JobOrderIDs")


class AcknowledgeAnswer(Payload, frozen=True, kw_only=True):
    """The answer to an acknowledgement: the job orders whose results may go; others are not stored or not ended.

    Example: {"ReturnStatus": 1, "Acknowledged": ["ORDER-1001"]}
    """

    return_status: int
    acknowledged: tuple[str, ...]


class OpenQuestion(Payload, frozen=True, kw_only=True):
    """What a person has to decide about an action or a step.

    `kind` is `OutcomeUnknown`, `AwaitsIntervention` or `AwaitsSecondPerson`.

    Example: {"Kind": "OutcomeUnknown", "Action": "tighten", "Reason": "the controller has no result of it"}
    """

    kind: str
    action: str
    reason: str | None = None


class AwaitsPersonEvent(Payload, frozen=True, kw_only=True):
    """A job that waits for a person, with all that is open (not part of the standard).

    Example: {"JobOrderID": "ORDER-1001",
     "JobState": [{"StateText": {"Text": "Running", "Locale": "en"}, "StateNumber": 3}], "Questions": "…"}
    """

    job_order_id: str
    job_state: tuple[State, ...]
    questions: tuple[OpenQuestion, ...]


class StateIndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a job; `has_result`: its response is retained on its result topic.

    Example: {"job_order_id": "ORDER-1001",
     "state": [{"StateText": {"Text": "Running", "Locale": "en"}, "StateNumber": 3}]}
    """

    job_order_id: str
    state: tuple[State, ...]
    has_result: bool = False


class StateIndex(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of a scope; `seq` grows by one with each published index, on all instances.

    Example: {"seq": 103, "scope": "station-1", "published_at": "2026-11-26T16:42:05.990000Z", "jobs": "…"}
    """

    seq: int
    scope: str
    published_at: datetime
    jobs: tuple[StateIndexEntry, ...]
