"""Why a request failed, and with which status of HTTP the answer says it."""

from typing import Final

from edge.features.page.models import Problem
from edge.foundation.errors import EdgeError, Refused, Unavailable
from edge.foundation.text import Text


class Denied(EdgeError):
    """The request is refused before it is executed; `record` is the reason for the audit trail, empty for none."""

    def __init__(self, status: int, kind: str, message: str | Text, advice: str | Text = "", record: str = "") -> None:
        super().__init__(message, advice)
        self.status = status
        self.kind = kind
        self.record = record


_STATUS: Final = {
    "unknown_job": 404,
    "unknown_alarm": 404,
    "unknown_flow": 404,
    "unknown_cycle": 404,
    "unknown_operation": 404,
    "unknown_recipe": 404,
    "unknown_tag": 404,
    "unknown_chart": 404,
    "unknown_lock": 404,
    "unknown_trace": 404,
    "unknown_session": 404,
    "unknown_certificate": 404,
    "no_history": 404,
    "no_chart": 404,
    "invalid_state": 409,
    "duplicate": 409,
    "no_cycle": 409,
    "flows_off": 409,
    "telemetry_off": 409,
    "locked": 409,
    "busy": 503,
    "damaged": 500,
    "unreadable": 500,
}
_REFUSED: Final = 422
_UNAVAILABLE: Final = 503
_DEFECT: Final = 500


def problem_of(error: EdgeError) -> tuple[int, Problem]:
    """Return the status and the content of the answer to a request that failed."""
    match error:
        case Denied():
            return error.status, Problem(kind=error.kind, reason=error.message, advice=error.advice)
        case Refused():
            status = _STATUS.get(error.kind, _REFUSED)
            return status, Problem(kind=error.kind, reason=error.message, advice=error.advice)
        case Unavailable():
            return _UNAVAILABLE, Problem(kind="unavailable", reason=error.message, advice=error.advice)
        case _:
            advice = "Report it with the output of: edge support-bundle FILE"
            return _DEFECT, Problem(kind="internal", reason="the request met a defect of this software.", advice=advice)
