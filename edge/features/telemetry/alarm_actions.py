"""Executes the job actions of alarms as calls of job methods, each once."""

import functools

import structlog

from edge.model.isa95 import IdCall, LocalizedText, ReturnStatus
from edge.model.job_state import Cause
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.store import jobs
from edge.store import kept_alarms as alarms
from edge.store.background import restart_on_outage
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange

logger = structlog.get_logger(__name__)

CURSOR = "actions"
_METHODS = {"pause": Cause.HOLD, "abort": Cause.ABORT}


async def follow_actions(store: Store, service: JobService, source: str) -> None:
    """Call the method that each alarm asks for, until cancelled; a call is known by the position of its change."""
    await restart_on_outage("alarm actions", functools.partial(_follow, store, service, source))


async def _follow(store: Store, service: JobService, source: str) -> None:
    async for change in alarms.follow(store, await alarms.cursor(store, CURSOR)):
        if change.action:
            await _call(store, service, source, change)
            await store.commit(alarms.save_cursor(store.keys, CURSOR, change.position))


async def _call(store: Store, service: JobService, source: str, change: AlarmChange) -> None:
    alarm, method = change.alarm, _METHODS.get(change.action)
    job = await jobs.load(store, alarm.job) if alarm.job else None
    if job is None or method is None:
        return
    text = next(iter(alarm.message.values()), alarm.rule)
    arguments = IdCall(job_order_id=job.job_id, comment=(LocalizedText(text=text),))
    call = JobCall(job.scope, method, arguments, f"{source}:alarms", change.position, by=f"alarm {alarm.rule}")
    answer = await service.call(call)
    taken = answer.status is ReturnStatus.NO_ERROR
    log = logger.info if taken else logger.warning
    log("alarm action called", job=job.job_id, method=method.value, alarm=alarm.id, reasons=answer.reasons)
