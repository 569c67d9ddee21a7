"""The events for the MES: composed from transitions, responses, progress and late results, and published in order."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.ticks import next_tick
from edge.links.mqtt import Message, MqttSession, PublishRefused, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import (
    AWAITS_PERSON_TYPE,
    LATE_RESULT_TYPE,
    PROGRESS_TYPE,
    PROGRESS_TYPE_V1,
    RESPONSE_UPDATE_TYPE,
    STATUS_EVENT_TYPE,
)
from edge.model.instant import rfc3339, utc
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent, Parameter
from edge.model.job_message import (
    AwaitsPersonEvent,
    CommandProgress,
    CommandProgressV1,
    JobProgress,
    JobProgressV1,
    LateResultEvent,
    OpenQuestion,
    StepProgress,
    StepProgressV1,
)
from edge.model.job_state import Cause, has_ended, has_response, is_transition, state_entries
from edge.northbound.topics import StartedWrite, Topics, TopicWriter, WriteOutcome
from edge.sfc.titles import action_of, step_of
from edge.station.response import HELD_ID, INTERVENTIONS_ID, UNKNOWN_ID
from edge.station.runs import Progress
from edge.store import changes, dead_letters, jobs, responses
from edge.store.background import Isolated
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.dead_letters import LateCursor, Letter
from edge.store.jobs import Job
from edge.store.reads import BEGINNING

logger = structlog.get_logger(__name__)

SECOND_ID: Final = "AwaitsSecondPerson"
"""The kind of question about an intervention that another person has to confirm."""


async def load_changed_job(store: Store, change: Change) -> tuple[Job | None, JobResponse | None] | None:
    """Return the job of a change as it is now, and its response with the state right after the change.

    None: the job cannot be read, and the change has no event. Raises Unavailable when the store is unavailable.
    """
    event = "change not published, job unreadable"
    with Isolated(logger, event, job=change.job_order_id, position=change.position):
        job = await jobs.load(store, change.job_order_id)
        response = await responses.load(store, job) if job and has_response(job.status) else None
        if response:
            response = msgspec.structs.replace(response, job_state=state_entries(change.status))
        return job, response
    return None


def change_events(source: str, change: Change, job: Job | None, response: JobResponse | None) -> Sequence[CloudEvent]:
    """Return the events of a change: of a transition, or of a response that changed without one; none for others.

    A job that waits for a person has an event of its own. The events of a change have the same ids each time they are
    made.
    """
    if event := status_event(source, change, job, response):
        return (event,)
    if change.cause is not Cause.RESULT_UPDATE or job is None or response is None:
        return ()
    state = state_entries(change.status)
    update = JobStatusEvent(job_order=job.order, job_state=state, job_response=response)
    events = [_job_event(source, change, job, RESPONSE_UPDATE_TYPE, update)]
    if questions := tuple(open_questions(response, change)):
        waiting = AwaitsPersonEvent(job_order_id=job.job_id, job_state=state, questions=questions)
        events.append(_job_event(source, change, job, AWAITS_PERSON_TYPE, waiting, part="/person"))
    return events


def open_questions(response: JobResponse, change: Change) -> Iterator[OpenQuestion]:
    """Yield what a person has to decide about the job of a response, as of a change."""
    for parameter in response.job_response_data or ():
        if parameter.id in {UNKNOWN_ID, HELD_ID} and parameter.subparameters:
            for subparameter in parameter.subparameters:
                reason = None if subparameter.value is None else str(subparameter.value)
                yield OpenQuestion(kind=parameter.id, action=subparameter.id, reason=reason)
        if parameter.id == INTERVENTIONS_ID and not has_ended(change.status):
            yield from _unconfirmed(parameter, utc(change.at))


def _unconfirmed(interventions: Parameter, at: datetime) -> Iterator[OpenQuestion]:
    """Yield the interventions that wait for a second person."""
    for parameter in interventions.subparameters or ():
        facts = {fact.id: str(fact.value) for fact in parameter.subparameters or ()}
        until = facts.get("waits_for_second_until")
        if until and datetime.fromisoformat(until) > at:
            reason = f"{facts['kind']}, asked for by {facts['by']}, until {until}: {facts.get('reason', '')}"
            yield OpenQuestion(kind=SECOND_ID, action=facts["subject"], reason=reason)


def _job_event(
    source: str, change: Change, job: Job | None, event_type: str, data: object, part: str = ""
) -> CloudEvent:
    return CloudEvent(
        id=f"{change.event_id}{part}",
        source=source,
        type=event_type,
        subject=change.scope,
        correlationid=job.correlation_id if job else None,
        causationid=job.causation_id or None if job else None,
        extensions=job.trace if job else {},
        data=data,
    )


def status_event(source: str, change: Change, job: Job | None, response: JobResponse | None) -> CloudEvent | None:
    """Return the event of a change (OPC 10031-4, 6.2.8); None for a change that is not a transition.

    The event of a change has the same id each time it is made.
    """
    if not is_transition(change.cause):
        return None
    order = job.order if job else JobOrder(job_order_id=change.job_order_id)
    status = JobStatusEvent(job_order=order, job_state=state_entries(change.status), job_response=response)
    return _job_event(source, change, job, STATUS_EVENT_TYPE, status)


def progress_event(source: str, progress: Progress, version: int = 2) -> CloudEvent:
    """Return the event of the steps that changed and the commands that were sent, in a version of its form."""
    job, is_former = progress.loaded.job, version == 1
    return CloudEvent(
        id=new_id(),
        source=source,
        type=PROGRESS_TYPE_V1 if is_former else PROGRESS_TYPE,
        subject=job.scope,
        correlationid=job.correlation_id,
        causationid=job.causation_id or None,
        extensions=job.trace,
        data=_progress_v1(progress) if is_former else _progress(progress),
    )


def _progress_v1(progress: Progress) -> JobProgressV1:
    steps = (StepProgressV1(step.step, step.active) for step in progress.steps)
    commands = (
        CommandProgressV1(request.action, request.phase.value, request.attempt, request.type_id)
        for request in progress.requests
    )
    return JobProgressV1(progress.loaded.job.job_id, progress.at, tuple(steps), tuple(commands))


def _progress(progress: Progress) -> JobProgress:
    net = progress.loaded.net
    steps = (StepProgress(step.step, step.active, step_of(net, step.step).title) for step in progress.steps)
    commands = (
        CommandProgress(request.action, request.phase.value, request.attempt, request.type_id, action.title)
        for request in progress.requests
        if (action := action_of(net, request.action, request.step))
    )
    return JobProgress(progress.loaded.job.job_id, rfc3339(progress.at), tuple(steps), tuple(commands))


REPUBLISH_WINDOW_S = 3600
"""How long a published event is kept to be published again unchanged: two saves of a broker's database."""


class PublishedEvent(Struct, frozen=True):
    """The result of publishing an event: the position of its change if it was published, and whether it was read."""

    position: str | None = None
    is_read: bool = False


class StatusEventPublisher:
    """Publishes status events; while the broker refuses one, the later ones wait."""

    def __init__(self, store: Store, session: MqttSession, writer: TopicWriter, source: str, topics: Topics) -> None:
        self._store = store
        self._session = session
        self._writer = writer
        self._source = source
        self._topics = topics
        self.position = BEGINNING
        """The last change whose event, with those of all before it, was published."""
        self.is_blocked = False
        """Whether the broker refuses events."""

    async def compose(self, change: Change, job: Job | None, response: JobResponse | None) -> list[Message]:
        """Return the events of a change as they were published first. Raises Unavailable without the store."""
        events = change_events(self._source, change, job, response)
        return [to_message(await self._first_form(change, event), self._topics.events) for event in events]

    async def start(self, events: Sequence[Message]) -> Sequence[StartedWrite]:
        """Send the events of a change, unless earlier ones wait. Raises Unavailable when the broker is unavailable."""
        return () if self.is_blocked else [await self._writer.start(event) for event in events]

    async def finish(self, change: Change, started: Sequence[StartedWrite]) -> PublishedEvent:
        """Wait until the broker has the events of a change; the caller finishes changes in their order.

        Events behind a refused one wait, also those that the broker has taken meanwhile: they are published again under
        the same ids. Raises Unavailable when the broker is unavailable.
        """
        outcome = await _outcome(started)
        if self.is_blocked:
            return PublishedEvent()
        if outcome is WriteOutcome.REFUSED:
            self.is_blocked = True
            return PublishedEvent()
        self.position = change.position
        return PublishedEvent(change.position, outcome is WriteOutcome.READ)

    def skip(self, change: Change) -> str | None:
        """Advance past the event of a change that cannot be read, unless earlier events wait; return the position."""
        if self.is_blocked:
            return None
        self.position = change.position
        return change.position

    async def republish(self, after: str, last: str, connection: int) -> None:
        """Publish the events of the changes between two positions again, under the same ids.

        On that connection only: on another one, more may be lost. While the broker refuses one, the later ones wait.
        """
        is_blocked, position = False, after
        async for change in changes.read_between(self._store, self._topics.scope, after, last):
            if found := await load_changed_job(self._store, change):
                events = await self.compose(change, *found)
                self._session.require_connection(connection)
                if await _outcome([await self._writer.start(event) for event in events]) is WriteOutcome.REFUSED:
                    is_blocked = True
                    break
            position = change.position
        # Set last: after an interruption the waiting events must still wait, and no later one may precede them.
        self.is_blocked, self.position = is_blocked, position if is_blocked else last
        await self._store.commit(changes.save_event_cursor(self._store.keys, self._topics.scope, self.position))

    async def _first_form(self, change: Change, event: CloudEvent) -> CloudEvent:
        """Return the event as it was published first: the job may have changed since."""
        text, part = msgspec.json.encode(event).decode(), event.id.removeprefix(f"{change.scope}/")
        first = await changes.keep_published(self._store, change.scope, part, text, REPUBLISH_WINDOW_S)
        return event if first == text else msgspec.json.decode(first, type=CloudEvent)


async def _outcome(started: Sequence[StartedWrite]) -> WriteOutcome:
    """Return the outcome of the events of a change: refused if one is, and read if one is."""
    outcome = WriteOutcome.UNREAD
    for started_write in started:
        write_outcome = await started_write.outcome()
        if write_outcome is WriteOutcome.REFUSED:
            return write_outcome
        outcome = write_outcome if outcome is WriteOutcome.UNREAD else outcome
    return outcome


POLL_INTERVAL_S = 2.0


class LateResultPublisher:
    """Publishes the late results of a scope. Its cursor is in the store: after a restart it continues from there."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        source: str,
        topics: Topics,
        poll_interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._poll_interval_s = poll_interval_s
        self._cursor: LateCursor | None = None
        """The last letter that was read; None before the first read."""

    async def run(self) -> None:
        """Publish until cancelled; an unavailable broker or store delays it."""
        # Another instance may have published since this one last did.
        self._cursor = None
        while True:
            try:
                await self._publish_all()
            except (Unavailable, PublishRefused, Refused) as error:
                logger.debug("late results wait", reason=error.message)
                self._cursor = None
            await next_tick(self._poll_interval_s)

    async def _publish_all(self) -> None:
        scope = self._topics.scope
        if self._cursor is None:
            self._cursor = await dead_letters.last_published(self._store, scope)
        late_result_page = await dead_letters.load_late(self._store, self._cursor)
        if late_result_page.letters:
            await self._store.settle()
        for letter_id, letter in late_result_page.letters.items():
            if letter.scope == scope:
                event = late_result_event(self._source, letter_id, letter)
                await self._session.send(to_message(event, self._topics.events))
                await self._store.commit(dead_letters.save_published(self._store.keys, scope, letter_id))
        self._cursor = late_result_page.end


def late_result_event(source: str, letter_id: str, letter: Letter) -> CloudEvent:
    """Return the event of a late result; its id is the same each time."""
    details = letter.details
    return CloudEvent(
        id=dead_letters.event_id(letter_id, letter),
        source=source,
        type=LATE_RESULT_TYPE,
        subject=letter.scope,
        causationid=details.get("command_id") or None,
        data=LateResultEvent(
            job_order_id=letter.job_id,
            command_id=details.get("command_id", ""),
            source=details.get("source", ""),
            reason=str(letter.reason),
            data=_data(details.get("data", "null")),
        ),
    )


def _data(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # The data were cut at the limit.
        return text


ProgressMode = Literal["readers", "always", "off"]


class ProgressLimits(Struct, frozen=True):
    """How much progress is published: one event of a job per `interval_s`, `queue_size` jobs waiting.

    `probe_s` is how long a topic without reader stays silent before it is retried.
    """

    interval_s: float = 0.1
    probe_s: float = 60.0
    queue_size: int = 1000


class ProgressPublisher:
    """Publishes the progress of the runs of this instance; events may be lost, the store holds everything.

    The progress of a job within an interval is one event. One event per `probe_s` has QoS 1: its PUBACK shows whether
    the topic has a subscriber. Without a reader nothing else is published.
    """

    def __init__(
        self,
        session: MqttSession,
        source: str,
        topics: Topics,
        mode: ProgressMode = "readers",
        limits: ProgressLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        version: int = 2,
    ) -> None:
        self._session = session
        self._source = source
        self._topics = topics
        self._mode = mode
        self._version = version
        self._limits = limits or ProgressLimits()
        self._clock = clock
        self._waiting: dict[str, Progress] = {}
        self._order: deque[str] = deque()
        self._awake = asyncio.Event()
        self._has_reader = False
        self._probe_at = 0.0

    def watch(self, progress: Progress) -> None:
        """Queue the progress of a run; it is dropped while the topic has no reader, or too many jobs wait."""
        job = progress.loaded.job
        if job.scope != self._topics.scope or not self._is_wanted():
            return
        earlier = self._waiting.get(job.job_id)
        if earlier:
            self._waiting[job.job_id] = replace(
                progress, steps=earlier.steps + progress.steps, requests=earlier.requests + progress.requests
            )
        elif len(self._waiting) < self._limits.queue_size:
            self._waiting[job.job_id] = progress
            self._order.append(job.job_id)
            self._awake.set()

    def _is_wanted(self) -> bool:
        match self._mode:
            case "always":
                return True
            case "off":
                return False
            case "readers":
                return self._has_reader or self._clock() >= self._probe_at

    async def run(self) -> None:
        """Publish queued progress until cancelled."""
        while True:
            await self._awake.wait()
            self._awake.clear()
            for _ in range(len(self._order)):
                await self._publish(self._waiting.pop(self._order.popleft()))
            # Progress of the same jobs meanwhile is added to their next event.
            await asyncio.sleep(self._limits.interval_s)

    async def _publish(self, progress: Progress) -> None:
        message = to_message(progress_event(self._source, progress, self._version), self._topics.data)
        try:
            if self._mode == "always" or self._clock() < self._probe_at:
                if self._mode == "always" or self._has_reader:
                    await self._session.send(message, qos=0)
                return
            self._probe_at = self._clock() + self._limits.probe_s
            # Until the PUBACK arrives, progress is queued, not dropped.
            self._has_reader = True
            self._has_reader = await self._session.send(message, qos=1)
        except (Unavailable, Refused) as error:
            self._has_reader = False
            logger.debug("progress dropped", job=progress.loaded.job.job_id, reason=error.message)
