"""Judges the answers of job methods for the API."""

from edge.features.page.problems import Denied
from edge.features.page.services import WebServices
from edge.model.isa95 import ReturnStatus
from edge.station.job_call import CallAnswer


def source_of(services: WebServices) -> str:
    """Return the source of the calls of this page."""
    return f"urn:microdcs-edge:{services.gateway}:web"


def refusal_of(answer: CallAnswer) -> str:
    """Return why a call was refused; empty for one that was done."""
    is_done = answer.status is ReturnStatus.NO_ERROR
    return "" if is_done else "; ".join(answer.reasons) or answer.status.name or "refused"


def refuse_unless_done(answer: CallAnswer, method: str) -> None:
    """Raise Denied for a call that was refused."""
    reasons = refusal_of(answer)
    match answer.status:
        case ReturnStatus.NO_ERROR:
            return
        case ReturnStatus.INVALID_JOB_ORDER_STATUS:
            raise Denied(409, "invalid_state", f"{method} is refused: {reasons}.", "Look at the state of the job.")
        case ReturnStatus.UNKNOWN_JOB_ORDER_ID:
            raise Denied(404, "unknown_job", f"{method} is refused: {reasons}.", "Look at the list of jobs.")
        case _:
            advice = "Look at what the station accepts: mode, Work Masters, limit."
            raise Denied(422, "refused", f"{method} is refused: {reasons}.", advice)
