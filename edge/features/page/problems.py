"""Why a request failed, and with which status of HTTP the answer says it."""

import re
from typing import Final

from edge.features.page.models import Problem
from edge.features.page.services import WebServices
from edge.foundation.errors import EdgeError, LocalFault, Refused, Unavailable
from edge.foundation.text import Text
from edge.model.isa95 import ReturnStatus
from edge.station.job_call import CallAnswer


class Denied(EdgeError):
    """The request is refused before it is executed; `record` is the reason for the audit trail, empty for none."""

    def __init__(self, status: int, kind: str, message: str | Text, advice: str | Text = "", record: str = "") -> None:
        super().__init__(message, advice)
        self.status = status
        self.kind = kind
        self.record = record


STATUSES: Final = {
    "forbidden": 403,
    "own_user": 409,
    "unknown_letter": 404,
    "unknown_backup": 404,
    "has_keys": 403,
    "no_space": 507,
    "unknown_equipment": 404,
    "nothing_open": 409,
    "late_result": 409,
    "redacted": 409,
    "not_ended": 409,
    "unknown_job": 404,
    "unknown_alarm": 404,
    "unknown_flow": 404,
    "unknown_cycle": 404,
    "unknown_operation": 404,
    "unknown_recipe": 404,
    "unknown_revision": 404,
    "unknown_draft": 404,
    "unknown_version": 404,
    "unknown_tag": 404,
    "unknown_chart": 404,
    "unknown_lock": 404,
    "unknown_trace": 404,
    "unknown_prompt": 404,
    "unknown_picture": 404,
    "unknown_page": 404,
    "unknown_session": 404,
    "unknown_certificate": 404,
    "no_history": 404,
    "no_chart": 404,
    "invalid_state": 409,
    "not_open": 409,
    "duplicate": 409,
    "is_badge": 409,
    "draft_changed": 409,
    "revision_changed": 409,
    "tests_failed": 409,
    "impossible_edit": 409,
    "no_request": 409,
    "same_person": 409,
    "no_cycle": 409,
    "flows_off": 409,
    "archive_off": 409,
    "telemetry_off": 409,
    "locked": 409,
    "busy": 503,
    "damaged": 500,
    "unreadable": 500,
}
"""The status of each kind of refusal; all others are 422."""
_COMMAND: Final = re.compile(r"\s*: edge [a-z].*?(?=\.?$|\. [A-Z])", re.DOTALL)
"""A command up to the end of its sentence."""
_REFUSED: Final = 422
_UNAVAILABLE: Final = 503
_DEFECT: Final = 500


def problem_of(error: EdgeError, language: str) -> tuple[int, Problem]:
    """Return the status and the content of the answer to a request that failed, in a language."""
    text, advice = error.text, error.advice_text
    match error:
        case Denied():
            status, kind = error.status, error.kind
        case Refused():
            status, kind = STATUSES.get(error.kind, _REFUSED), error.kind
        case LocalFault():
            status, kind = _UNAVAILABLE, "local_fault"
        case Unavailable():
            status, kind = _UNAVAILABLE, "unavailable"
        case _:
            status, kind = _DEFECT, "internal"
            text = Text.of("the request met a defect of this software.")
            advice = Text.of("Report it with a support bundle: edge support-bundle FILE")
    return status, Problem(kind=kind, reason=text.in_language(language), advice=_sentence(advice.in_language(language)))


def without_command(text: str) -> str:
    """Return a text for people at a page, without the command of a terminal: `Look at the job: edge jobs why J1`."""
    return _COMMAND.sub("", text)


def _sentence(advice: str) -> str:
    words = without_command(advice)
    return words if words == advice or words.endswith(".") else f"{words}."


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
