"""The operations of the HTTP API: each with its path, its role, what it takes and what it does.

The table serves the requests, and OpenAPI is generated from it. Changes go through the same functions as those of the
command line, of the MES and of OPC UA, and leave a record in the audit trail.
"""

from typing import Final

from edge.access.web_audit import WebCaller
from edge.app.features import page_parts
from edge.app.page_part import ApiCall, ApiOperation, Execute, Svg
from edge.features.page import job_views, models
from edge.features.page.attention import read_attention
from edge.features.page.gateway_operations import GATEWAY_OPERATIONS, list_equipment
from edge.features.page.problems import Denied, refusal_of, refuse_unless_done, source_of
from edge.features.page.recipe_operations import RECIPE_OPERATIONS
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.isa95 import IdCall, LocalizedText, ReturnStatus
from edge.model.job_state import Cause
from edge.model.recipe import Intervention
from edge.model.user import INTERVENTION_ROLES, Role
from edge.sfc.signal import Intervene, Resolution, Resolve, kind_text
from edge.station.intervene import InterventionRequest
from edge.station.job_call import JobCall
from edge.station.public_history import PublicHistory
from edge.station.public_job import PublicJobDetail, public_job
from edge.station.stored_job import find, load

MOST_JOBS: Final = 200


async def _status(services: WebServices, call: ApiCall) -> models.Status:
    return services.status(call.caller.languages)


async def _attention(services: WebServices, _: ApiCall) -> models.Attention:
    return await read_attention(services)


async def _me(_: WebServices, call: ApiCall) -> models.Identity:
    return identity(call.caller)


def identity(caller: WebCaller) -> models.Identity:
    """Return who a caller is."""
    match caller.role:
        case Role.OBSERVER:
            return models.Identity(user=caller.user, role="observer")
        case Role.OPERATOR:
            return models.Identity(user=caller.user, role="operator")
        case Role.ENGINEER:
            return models.Identity(user=caller.user, role="engineer")


async def _jobs(services: WebServices, call: ApiCall) -> models.JobPage:
    states = [word for word in call.query.get("state", "").split(",") if word]
    if wrong := [state for state in states if state not in job_views.STATES]:
        raise Refused(
            "invalid_query",
            Text.of("{wrong!r} is not a state.", wrong=wrong[0]),
            Text.of("States are {states}.", states=", ".join(job_views.STATES)),
        )
    text, skip = call.query.get("text", ""), job_offset(call.query.get("offset", ""))
    return await job_views.list_jobs(
        services.store, services.scopes, states, text, MOST_JOBS, skip, call.caller.language
    )


_MOST_DIGITS: Final = 9
"""No list has more jobs than that."""


def job_offset(text: str) -> int:
    """Return how many jobs a list leaves out at its beginning. Raises Refused for another text."""
    if not (text == "" or (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS)):
        raise Refused(
            "invalid_query", Text.of("{text!r} is not a number of jobs.", text=text), "Leave it out for the first jobs."
        )
    return int(text or 0)


async def _job(services: WebServices, call: ApiCall) -> PublicJobDetail:
    return await job_views.job_detail(services, call.path["job"], call.caller.languages)


async def _chart(services: WebServices, call: ApiCall) -> Svg:
    return Svg(await job_views.job_chart(services.store, call.path["job"], services.jobs_clock, call.caller.language))


async def _gantt(services: WebServices, call: ApiCall) -> Svg:
    return Svg(await job_views.job_gantt(services.store, call.path["job"], services.jobs_clock(), call.caller.language))


async def _history(services: WebServices, call: ApiCall) -> PublicHistory:
    return await job_views.job_history(services.store, call.path["job"], call.caller.language)


async def _results(services: WebServices, call: ApiCall) -> models.ResultList:
    return await job_views.job_results(services.store, call.path["job"], call.caller.language)


async def _equipment(services: WebServices, call: ApiCall) -> models.EquipmentList:
    return list_equipment(services, call.caller.language)


def _method(cause: Cause) -> Execute:
    """Return the operation that calls a job method."""

    async def execute(services: WebServices, call: ApiCall) -> models.MethodDone:
        job = await load(services.store, call.path["job"])
        job_id, comment = job.job.job_id, call.body.comment
        if cause.value.lower() in services.reason_for and not comment.strip():
            raise Refused(
                "needs_reason", "a reason is needed.", "State it as `comment`, for those who read the result."
            )
        texts = (LocalizedText(text=comment),) if comment else None
        job_call = JobCall(
            job.job.scope,
            cause,
            IdCall(job_order_id=job_id, comment=texts),
            source_of(services),
            call.id,
            languages=call.caller.languages,
            by=call.caller.at_page,
        )
        answer = await services.jobs.call(job_call)
        services.audit.called(call.caller, cause.value, job_id, comment, refusal_of(answer))
        refuse_unless_done(answer, cause.value)
        stored_job = await find(services.store, job_id)
        return models.MethodDone(job=public_job(stored_job.job, call.caller.language) if stored_job else None)

    return execute


async def _resolve(services: WebServices, call: ApiCall) -> models.MethodDone:
    resolve_request_body: models.ResolveRequestBody = call.body
    if resolve_request_body.data is not None and resolve_request_body.resolution != "done":
        raise Refused("invalid_payload", "`data` is the result of an action that was done.", "Leave it out.")
    by = call.caller.user
    signal = Resolve(
        resolve_request_body.action,
        Resolution(resolve_request_body.resolution),
        resolve_request_body.data,
        resolve_request_body.reason,
        by,
    )
    return await _decide(services, call, "Resolve", resolve_request_body.action, signal)


async def _intervene(services: WebServices, call: ApiCall) -> models.MethodDone:
    body: models.InterventionRequestBody = call.body
    kind = Intervention(body.kind)
    if call.caller.role < INTERVENTION_ROLES[kind]:
        needed = INTERVENTION_ROLES[kind].text
        raise Denied(
            403,
            "forbidden",
            Text.of("{kind} needs the role {needed}.", kind=kind_text(kind), needed=needed),
            "Log in as a user with this role.",
        )
    signal = Intervene(
        kind,
        action=body.action,
        step=body.step,
        target=body.target,
        data=body.data,
        reason=body.reason,
        by=call.caller.user,
    )
    return await _decide(services, call, f"Intervene {body.kind}", body.action or body.step, signal)


async def _decide(
    services: WebServices, call: ApiCall, name: str, subject: str, signal: Resolve | Intervene
) -> models.MethodDone:
    """Apply the decision of a person about a run."""
    job = await load(services.store, call.path["job"])
    job_id = job.job.job_id
    request = InterventionRequest(
        scope=job.job.scope,
        job_id=job_id,
        signal=signal,
        source=source_of(services),
        event_id=call.id,
        has_login=True,
    )
    try:
        answer = await services.intervene(request)
    except Refused as refusal:
        services.audit.called(call.caller, name, f"{job_id}/{subject}", signal.reason, refusal.message)
        raise
    awaits_second = answer.status is ReturnStatus.AWAITS_SECOND_PERSON
    refusal_text = "" if awaits_second else refusal_of(answer)
    services.audit.called(call.caller, name, f"{job_id}/{subject}", signal.reason, refusal_text)
    if not awaits_second:
        refuse_unless_done(answer, name)
    stored_job = await find(services.store, job_id)
    shown = public_job(stored_job.job, call.caller.language) if stored_job else None
    return models.MethodDone(job=shown, awaits_second=awaits_second)


_JOB = "/jobs/{job}"

READS: Final = (
    ApiOperation("GET", "/status", "Return the gateway in short.", Role.OBSERVER, models.Status, _status),
    ApiOperation("GET", "/attention", "Return what needs a person now.", Role.OBSERVER, models.Attention, _attention),
    ApiOperation("GET", "/me", "Return who calls.", Role.OBSERVER, models.Identity, _me),
    ApiOperation(
        "GET",
        "/jobs",
        f"List at most {MOST_JOBS} jobs.",
        Role.OBSERVER,
        models.JobPage,
        _jobs,
        query={
            "state": f"States, separated by commas: {', '.join(job_views.STATES)}.",
            "offset": "How many jobs to leave out at the beginning.",
            "text": "A part of its id or of what it works on, such as a VIN; upper and lower case are the same.",
        },
    ),
    ApiOperation(
        "GET", _JOB, "Return a job with its progress, and what it waits for.", Role.OBSERVER, PublicJobDetail, _job
    ),
    ApiOperation("GET", f"{_JOB}/chart.svg", "Return the running IEC 61131-3 chart.", Role.OBSERVER, Svg, _chart),
    ApiOperation("GET", f"{_JOB}/gantt.svg", "Return the timeline of steps and actions.", Role.OBSERVER, Svg, _gantt),
    ApiOperation("GET", f"{_JOB}/history", "Return the newest decisions.", Role.OBSERVER, PublicHistory, _history),
    ApiOperation(
        "GET",
        f"{_JOB}/results",
        f"Return the newest {job_views.MOST_RESULTS} results of a job.",
        Role.OBSERVER,
        models.ResultList,
        _results,
    ),
    ApiOperation(
        "GET", "/equipment", "Return the equipment of this gateway.", Role.OBSERVER, models.EquipmentList, _equipment
    ),
)

_JOB_METHODS: Final = {
    "start": (Cause.START, "Allow a stored job to start."),
    "revoke": (Cause.REVOKE_START, "Revoke the permission to start."),
    "pause": (Cause.PAUSE, "Pause a running job: no new command is sent, its timers stop."),
    "resume": (Cause.RESUME, "Resume a paused job."),
    "stop": (Cause.STOP, "Stop a running or paused job; it ends as closed."),
    "abort": (Cause.ABORT, "Abort a job at once; it ends as aborted."),
    "cancel": (Cause.CANCEL, "Remove a job that has not started."),
    "clear": (Cause.CLEAR, "Remove a job that has ended."),
}

CHANGES: Final = (
    *(
        ApiOperation(
            "POST", f"{_JOB}/{name}", meaning, Role.OPERATOR, models.MethodDone, _method(cause), models.MethodCall
        )
        for name, (cause, meaning) in _JOB_METHODS.items()
    ),
    ApiOperation(
        "POST",
        f"{_JOB}/resolve",
        "Decide about an action of unknown outcome.",
        Role.OPERATOR,
        models.MethodDone,
        _resolve,
        models.ResolveRequestBody,
    ),
    ApiOperation(
        "POST",
        f"{_JOB}/intervene",
        "Intervene in a run as its recipe allows; `interventions` of the job lists what is possible now.",
        Role.OPERATOR,
        models.MethodDone,
        _intervene,
        models.InterventionRequestBody,
    ),
)

OPERATIONS: Final = (
    *READS,
    *CHANGES,
    *GATEWAY_OPERATIONS,
    *RECIPE_OPERATIONS,
    *(operation for part in page_parts() for operation in part.operations),
)
"""Every operation apart from login, logout and events, which answer with more than data."""
