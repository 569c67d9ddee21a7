"""Defines one operation of the HTTP API: its path, role, arguments and work; and judges the answers of job methods."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from edge.features.page.caller import WebCaller
from edge.features.page.problems import Denied
from edge.features.page.services import WebServices
from edge.foundation.text import Text
from edge.model.isa95 import ReturnStatus
from edge.model.user import Role
from edge.station.job_call import CallAnswer

TEXT_QUERY: Final = {"text": "A part of the name; upper and lower case are the same."}


class Svg(Struct, frozen=True):
    """A picture as the answer to a request."""

    document: str


class ApiCall(Struct, frozen=True):
    """One request: its caller, the parts of its path, its query and its decoded body.

    A change that is sent again under its `id` is carried out once.
    """

    caller: WebCaller
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any = None
    id: str = ""


class Download(Struct, frozen=True):
    """A file as the answer to a request."""

    content: bytes
    name: str
    media_type: str


Answer = Struct | Svg | Download
Execute = Callable[[WebServices, ApiCall], Awaitable[Answer]]


class ApiOperation(Struct, frozen=True):
    """One operation. `query` maps its parameters to their meaning; `body` and `answer` are types of the models."""

    method: str
    path: str
    summary: str
    role: Role
    answer: type[Answer]
    execute: Execute
    body: type[Struct] | None = None
    query: Mapping[str, str] = field(default_factory=dict)


def source_of(services: WebServices) -> str:
    """Return the source of the calls of this page."""
    return f"urn:microdcs-edge:{services.gateway}:web"


def refusal_of(answer: CallAnswer) -> str:
    """Return why a call was refused, for the audit trail; empty for one that was done."""
    is_done = answer.status is ReturnStatus.NO_ERROR
    return "" if is_done else str(_reason_of(answer))


def _reason_of(answer: CallAnswer) -> Text:
    return answer.reason if answer.reasons else Text(answer.status.words)


def refuse_unless_done(answer: CallAnswer, method: str) -> None:
    """Raise Denied for a call that was refused."""
    reasons = _reason_of(answer)
    match answer.status:
        case ReturnStatus.NO_ERROR:
            return
        case ReturnStatus.INVALID_JOB_ORDER_STATUS:
            raise Denied(
                409,
                "invalid_state",
                Text.of("{method} is refused: {reasons}.", method=method, reasons=reasons),
                "Look at the state of the job.",
            )
        case ReturnStatus.UNKNOWN_JOB_ORDER_ID:
            raise Denied(
                404,
                "unknown_job",
                Text.of("{method} is refused: {reasons}.", method=method, reasons=reasons),
                "Look at the list of jobs.",
            )
        case _:
            advice = "Look at what the station accepts: mode, Work Masters, limit."
            raise Denied(
                422, "refused", Text.of("{method} is refused: {reasons}.", method=method, reasons=reasons), advice
            )
