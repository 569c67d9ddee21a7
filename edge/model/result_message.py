"""The messages about results that this product adds: acknowledgements of the MES, and jobs that wait for a person."""

import msgspec

from edge.model.isa95 import Payload, State


class AcknowledgeCall(Payload, frozen=True, kw_only=True):
    """The acknowledgement that the MES has the results of these ended job orders (not part of the standard)."""

    job_order_ids: tuple[str, ...] = msgspec.field(name="JobOrderIDs")


class AcknowledgeAnswer(Payload, frozen=True, kw_only=True):
    """The answer to an acknowledgement: the job orders whose results may go; others are not stored or not ended."""

    return_status: int
    acknowledged: tuple[str, ...]


class OpenQuestion(Payload, frozen=True, kw_only=True):
    """What a person has to decide about an action or a step.

    `kind` is `OutcomeUnknown`, `AwaitsIntervention` or `AwaitsSecondPerson`.
    """

    kind: str
    action: str
    reason: str | None = None


class AwaitsPersonEvent(Payload, frozen=True, kw_only=True):
    """A job that waits for a person, with all that is open (not part of the standard)."""

    job_order_id: str
    job_state: tuple[State, ...]
    questions: tuple[OpenQuestion, ...]
