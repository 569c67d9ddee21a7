"""The prompts that open and end as the runs move, for those who show or publish them."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from edge.features.prompts import keys as prompts_keys
from edge.features.prompts.answering import Prompts
from edge.features.prompts.open_prompt import OpenPrompt, PublicPrompt, ended_attempt, prompts_of, public_prompt
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import PROMPT_TYPE
from edge.model.instant import Instant, rfc3339
from edge.sfc.run import ActionState
from edge.sfc.signal import Phase
from edge.station.decision import Decision, LoadedJob
from edge.store.commit import NOTHING, Commit, join, operation
from edge.store.keys import Keys


class PromptWatch:
    """A listener of active runs that passes on those whose prompts changed.

    active_runs.listeners.append(PromptWatch(prompts, show).note)
    """

    def __init__(self, prompts: Prompts, changed: Callable[[str, LoadedJob | None], None]) -> None:
        """Call `changed` with the job and its run; None for a run that is not active any more."""
        self._prompts = prompts
        self._changed = changed
        self._states: dict[str, frozenset[str]] = {}
        """The open prompts by their jobs, each with the first of two people."""

    def note(self, before: LoadedJob | None, now: LoadedJob | None) -> None:
        """Compare the prompts of a run with those before."""
        loaded = now or before
        if loaded is None:
            return
        job_id, prompts = loaded.job.job_id, self._prompts.of_job(now) if now else ()
        states = frozenset(f"{prompt.id} {prompt.first}" for prompt in prompts)
        if states == self._states.get(job_id, frozenset()):
            return
        if states:
            self._states[job_id] = states
        else:
            self._states.pop(job_id, None)
        self._changed(job_id, now)


class PromptEvent(Struct, frozen=True, kw_only=True):
    """A prompt that opened or ended; `change` is `opened` or `ended`.

    At the end `outcome` is the state of the action: `completed` with `result` and the person `by`, or another such as
    `timed_out`; it is empty where the job was removed.

    Example: {"change": "ended", "at": "2026-11-27T06:01:00.000Z", "outcome": "completed", "by": "anna",
     "result": {"choice": "ok"}, "prompt": {"id": "mgq3zjvgkpsfhx7u", "scope": "station-1",
     "job_order_id": "AXLE-0001", "step": "Inspect", "action": "inspect", "kind": "choose", "title": "Is it seated?",
     "text": "", "picture": "", "choices": [{"value": "ok", "title": "Yes"}, {"value": "defective", "title": "No"}],
     "fields": [], "role": "", "second_person": false, "sign": "", "needs_login": false,
     "since": "2026-11-27T06:00:00.000Z", "until": null, "first_by": "", "first_until": null}}
    """

    change: str
    at: Instant
    prompt: PublicPrompt
    outcome: str = ""
    result: Any = None
    by: str = ""


class StoredPrompt(Struct, frozen=True, kw_only=True):
    """A prompt in the store until its end is published; `is_announced` once its opening is."""

    prompt: PublicPrompt
    correlation_id: str = ""
    causation_id: str = ""
    trace: Mapping[str, str] = field(default_factory=dict)
    is_announced: bool = False


def stored_form(prompt: OpenPrompt, loaded: LoadedJob) -> StoredPrompt:
    """Return what the store keeps of a prompt; texts are in English, or in their first language."""
    job = loaded.job
    return StoredPrompt(
        prompt=public_prompt(prompt),
        correlation_id=job.correlation_id,
        causation_id=job.causation_id,
        trace=dict(job.trace),
    )


def save_prompt(keys: Keys, stored: StoredPrompt) -> Commit:
    """Write a prompt."""
    prompt = stored.prompt
    return operation("HSET", prompts_keys.prompts(keys, prompt.scope), prompt.id, msgspec.json.encode(stored).decode())


def opened_with(keys: Keys, type_ids: frozenset[str], decision: Decision) -> Commit:
    """Return the prompts that a decision opens, to be written in its commit."""
    opened = {
        request.command_id
        for request in decision.requests
        if request.type_id in type_ids and request.phase is Phase.START
    }
    if not opened:
        return NOTHING
    prompts = prompts_of(decision.loaded, type_ids, decision.at)
    return join(
        save_prompt(keys, stored_form(prompt, decision.loaded)) for prompt in prompts if prompt.command_id in opened
    )


def opening_of(stored: StoredPrompt) -> PromptEvent:
    """Return that a prompt opened."""
    return PromptEvent(change="opened", at=stored.prompt.since, prompt=stored.prompt)


def end_of(stored: StoredPrompt, loaded: LoadedJob | None, now: int) -> PromptEvent:
    """Return how a prompt ended that is not open any more; None for a job that is removed. `now` is in milliseconds."""
    attempt = ended_attempt(loaded, stored.prompt.id) if loaded else None
    if attempt is None:
        return PromptEvent(change="ended", at=rfc3339(now), prompt=stored.prompt)
    return PromptEvent(
        change="ended",
        at=rfc3339(attempt.ended_at or now),
        prompt=stored.prompt,
        outcome=attempt.state.value,
        result=attempt.result if attempt.state is ActionState.COMPLETED else None,
        by=attempt.resolved_by,
    )


def cloud_event(source: str, stored: StoredPrompt, event: PromptEvent) -> CloudEvent:
    """Return the event for the MES; its id is the same each time."""
    return CloudEvent(
        id=f"prompt/{stored.prompt.id}/{event.change}",
        source=source,
        type=PROMPT_TYPE,
        subject=stored.prompt.scope,
        correlationid=stored.correlation_id or None,
        causationid=stored.causation_id or None,
        extensions=stored.trace,
        data=event,
    )
