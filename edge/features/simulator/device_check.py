"""Checks a device over MQTT as the gateway will use it, and judges its answers: one finding for each expectation."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from math import inf
from types import MappingProxyType

import msgspec
from msgspec import Struct

from edge.equipment.mqtt_answer import NOT_STOPPED, UNKNOWN, complete_answer
from edge.foundation.errors import Refused
from edge.foundation.listeners import ChangeSignal
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent, correlation_bytes
from edge.model.equipment_data import CommandData
from edge.sfc.signal import Phase
from edge.station.safing_tries import INTERVALS_S

_REQUIRED = ("specversion", "id", "source", "type")
_SHORTEST_S = 0.02
_MEASURABLE_RATIO = 2
"""Work is measurable when it takes at least so many times as long as an idle answer, which TCP may delay by 40 ms."""
_AS_LONG_AGAIN = 0.7
"""An answer from memory takes a smaller part than this of the time that the work took."""
_SLOWER = 1.1
"""An answer that takes so many times as long as one without work was not ready before."""
_UNTIL_ITS_END = 0.8
"""A stopped work ends before this part of its duration."""


class Grade(StrEnum):
    """The grade of a finding; the gateway tolerates a `note`, a strict check does not."""

    OK = "ok"
    NOTE = "note"
    FAILED = "failed"


class CheckFinding(Struct, frozen=True):
    """A finding of a check."""

    check: str
    grade: Grade
    detail: str


class TimedAnswer(Struct, frozen=True):
    """An answer and the instant of its arrival, in monotonic seconds."""

    at: float
    message: Message

    @property
    def error_kind(self) -> str:
        """The kind of the error; empty for a result."""
        return self.message.user_properties.get("mdcserrorkind", "")

    @property
    def is_result(self) -> bool:
        """Whether it reports no error."""
        return not self.error_kind


class WorkTimes(Struct, frozen=True):
    """Seconds until the answers to a start, to its repetitions and to its reset; None where none came."""

    work: float | None
    again: tuple[float | None, ...]
    reset: float | None

    @property
    def measurable(self) -> float:
        """The duration of the work; 0 when it is hardly longer than an answer takes."""
        if self.work is None or self.work < max(_SHORTEST_S, _MEASURABLE_RATIO * self.idle):
            return 0.0
        return self.work

    @property
    def idle(self) -> float:
        """The shortest time until an answer without work; infinite when no answer came."""
        return min((seconds for seconds in (*self.again, self.reset) if seconds is not None), default=inf)

    @property
    def half(self) -> float:
        """The middle of the work; 0 when it cannot be measured."""
        return self.measurable / 2


def has_passed(findings: Iterable[CheckFinding], *, strict: bool) -> bool:
    """Return whether the gateway can work with the device; a strict check tolerates no note."""
    tolerated = {Grade.OK} if strict else {Grade.OK, Grade.NOTE}
    return all(finding.grade in tolerated for finding in findings)


def judge_presence(presence: bytes | None, topic: str) -> CheckFinding:
    """Return the finding about the retained presence; None when there is none."""
    match presence:
        case b"online":
            return CheckFinding("presence", Grade.OK, "a retained message says online")
        case None:
            detail = f"no retained message on {topic}/presence: commands that it lost are sent again late"
            return CheckFinding("presence", Grade.NOTE, detail)
        case other:
            return CheckFinding("presence", Grade.FAILED, f"expected online, found {other[:40]!r}")


def judge_answer(
    command_id: str, answers: Mapping[str, Sequence[TimedAnswer]], correlation_id: str, answer_s: float
) -> Iterator[CheckFinding]:
    """Yield the findings about the first answer to a start, among the answers by their `causationid`."""
    check = "start"
    if not answers.get(command_id):
        detail = f"no answer with causationid {command_id} in {answer_s:g} s"
        if others := [answer or "(none)" for answer in answers]:
            detail += f"; an answer came with causationid {', '.join(others[:3])}"
        yield CheckFinding(check, Grade.FAILED, detail)
        return
    message = answers[command_id][0].message
    try:
        event = to_event(complete_answer(message))
    except Refused as refusal:
        yield CheckFinding(check, Grade.FAILED, f"the answer cannot be read: {refusal.message}")
        return
    if event.mdcserrorkind:
        reason = event.mdcserrormessage or event.mdcserrorkind
        yield CheckFinding(check, Grade.NOTE, f"the answer is an error ({event.mdcserrorkind}): {reason}")
    else:
        yield CheckFinding(check, Grade.OK, f"answered with {message.payload[:200].decode(errors='replace')}")
    if missing := [name for name in _REQUIRED if name not in message.user_properties]:
        yield CheckFinding("attributes", Grade.NOTE, f"the answer has no {', '.join(missing)}")
    if message.payload and message.content_type != "application/json":
        yield CheckFinding("content type", Grade.NOTE, f"expected application/json, found {message.content_type!r}")
    if message.correlation_data is not None and message.correlation_data != correlation_bytes(correlation_id):
        yield CheckFinding("correlation data", Grade.NOTE, "they are not those of the command: return its 16 bytes")


def judge_repeated(times: WorkTimes, answers: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a start that was sent again after its answer."""
    check = "repeated start"
    if times.work is None or None in times.again:
        return CheckFinding(check, Grade.FAILED, "it does not answer a start again that it has answered")
    if len({answer.message.payload for answer in answers}) > 1:
        return CheckFinding(check, Grade.FAILED, "the second answer differs: it may have done the work again")
    again = min(seconds for seconds in times.again if seconds is not None)
    if times.measurable and again >= _AS_LONG_AGAIN * times.work:
        detail = (
            f"the same answer after {again:.2f} s, as long as the work ({times.work:.2f} s): it may have worked again"
        )
        return CheckFinding(check, Grade.NOTE, detail)
    return CheckFinding(check, Grade.OK, f"the same answer came again{_unless_measurable(times)}")


def judge_other_parameters(answers: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a start with the id of an answered one and other parameters, by the answers to it."""
    check = "start of a known id with other parameters"
    if any(answer.is_result for answer in answers):
        detail = "it answers with a result: which of the two commands it belongs to cannot be known"
        return CheckFinding(check, Grade.NOTE, detail)
    if not answers:
        return CheckFinding(check, Grade.NOTE, "no answer: it has to decline it with an error such as repeated_id")
    return CheckFinding(check, Grade.OK, f"it declines ({answers[0].error_kind})")


def judge_repeated_at_work(times: WorkTimes, answers: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a start that was sent again in the middle of its work."""
    check = "repeated start at work"
    if not answers:
        return CheckFinding(check, Grade.FAILED, "no answer to a start that was sent twice")
    if len({answer.message.payload for answer in answers}) > 1:
        return CheckFinding(check, Grade.FAILED, "two different answers: it may have done the work twice")
    later = answers[-1].at - answers[0].at
    if times.measurable and later >= max(_AS_LONG_AGAIN * times.half, _SLOWER * times.idle):
        detail = f"a second answer {later:.2f} s after the first: it may have worked twice ({times.work:.2f} s each)"
        return CheckFinding(check, Grade.NOTE, detail)
    return CheckFinding(check, Grade.OK, f"it works once{_unless_measurable(times)}")


def judge_stop(times: WorkTimes, began: float, answers: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a stop in the middle of work that began at an instant; `answers` are those after it."""
    first, check = answers[0], Phase.STOP.value
    if first.error_kind == NOT_STOPPED:
        return CheckFinding(check, Grade.NOTE, "it declines the stop: the gateway repeats it, without end")
    end = began + _UNTIL_ITS_END * times.measurable
    late = [answer for answer in answers if times.measurable and answer.is_result and answer.at >= end]
    if first in late:
        took = first.at - began
        detail = f"the result came after {took:.2f} s, as without a stop ({times.work:.2f} s): it may ignore stops"
        return CheckFinding(check, Grade.NOTE, detail)
    if late:
        return CheckFinding(check, Grade.FAILED, "a result came after it had confirmed the stop: it continued working")
    return CheckFinding(check, Grade.OK, f"an answer confirms the stop{_unless_measurable(times)}")


def judge_reset(took: float | None, starts: Sequence[TimedAnswer], resets: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a reset, by the answers to the start and to its reset."""
    finding = judge_confirmed(Phase.RESET, took)
    if took is None or not starts:
        return finding
    work, reset = (_members(answers[0].message.payload) for answers in (starts, resets))
    if reset and reset == work:
        detail = "the answer looks like that of a start: it may ignore phase; a reset must start nothing"
        return CheckFinding(finding.check, Grade.NOTE, detail)
    return finding


def judge_offered_again(answers: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a start with `offeredagain` that the device has not seen."""
    check = "start that was offered before"
    if not answers:
        return CheckFinding(check, Grade.FAILED, "no answer: it has to do the work, or to answer unknown")
    if answers[0].error_kind == UNKNOWN:
        return CheckFinding(check, Grade.OK, "it answers unknown: it has no memory of the time before")
    return CheckFinding(check, Grade.OK, "it works: its memory has to survive a restart")


def judge_lock(answers: Sequence[TimedAnswer]) -> CheckFinding:
    """Return the finding about a start without the permission to work."""
    check = "start without permission"
    if any(answer.is_result for answer in answers):
        return CheckFinding(check, Grade.FAILED, "it works although its permission is false")
    if answers:
        return CheckFinding(check, Grade.OK, f"it declines ({answers[0].error_kind})")
    return CheckFinding(check, Grade.OK, "it does not answer before it has the permission")


def judge_confirmed(phase: Phase, took: float | None) -> CheckFinding:
    """Return the finding about a command that must be answered; None when no answer came."""
    if took is None:
        detail = f"no answer confirms the {phase.value}: the gateway repeats it each {INTERVALS_S[-1]:g} s, without end"
        return CheckFinding(phase.value, Grade.FAILED, detail)
    return CheckFinding(phase.value, Grade.OK, f"an answer confirms the {phase.value}")


def _unless_measurable(times: WorkTimes) -> str:
    return "" if times.measurable else "; the work is too short to time it: choose --parameters that make it longer"


def _members(payload: bytes) -> frozenset[str]:
    """Return the names of the members of a JSON object; of other data, none."""
    try:
        return frozenset(msgspec.json.decode(payload, type=dict[str, object]))
    except msgspec.MsgspecError:
        return frozenset()


_SOURCE = "urn:microdcs-edge:device-check"
_RETAINED_S = 1.0
_REPEATS = 2
_LONGER = 1.5
"""After a stop the device is watched for so many times the duration of its work."""


class DeviceCheck:
    """The gateway's side of a device on `{topic}/commands`."""

    def __init__(
        self,
        session: MqttSession,
        topic: str,
        type_id: str,
        scope: str,
        answer_s: float,
        parameters: Mapping[str, object] = MappingProxyType({}),
        *,
        lock: bool = False,
    ) -> None:
        """Create a check; `answer_s` is how long an answer may take, with `lock` the device needs the permission."""
        self._session = session
        self._topic = topic
        self._type_id = type_id
        self._scope = scope
        self._answer_s = answer_s
        self._parameters = parameters
        self._lock = lock
        self._presence: bytes | None = None
        self._permission = b""
        self._answers: dict[str, list[TimedAnswer]] = {}
        self._changed = ChangeSignal()
        self._job_id = uuid.uuid4().hex[:8]

    async def run(self) -> list[CheckFinding]:
        """Run all checks, in order. Raises Unavailable when the broker is unavailable."""
        await self._session.subscribe(f"{self._topic}/answers", self._take_answer)
        await self._session.follow(f"{self._topic}/enabled", self._take_permission)
        await self._session.follow(f"{self._topic}/presence", self._take_presence)
        await self._changed.wait_until(lambda: self._presence is not None, _RETAINED_S)
        findings = [judge_presence(self._presence, self._topic)]
        async with self._permitted():
            return findings + await self._check_commands()

    @asynccontextmanager
    async def _permitted(self) -> AsyncIterator[None]:
        """Publish the permission to work for the length of the block; then restore what was retained before."""
        before = self._permission
        await self._permit(b"true")
        try:
            yield
        finally:
            await self._permit(before)

    async def _permit(self, payload: bytes) -> None:
        await self._session.publish(f"{self._topic}/enabled", payload, retain=True)

    async def _check_commands(self) -> list[CheckFinding]:
        start = self._command_id(1)
        if not await self._send(start, Phase.START):
            return [CheckFinding("subscription", Grade.FAILED, f"nothing subscribes to {self._topic}/commands")]
        findings = [CheckFinding("subscription", Grade.OK, f"it receives {self._topic}/commands")]
        work_s = await self._time_answer(start, 1)
        findings += judge_answer(start, self._answers, _correlation_id(start), self._answer_s)
        again = [await self._ask(start, Phase.START, is_again=True) for _ in range(_REPEATS)]
        reset_s = await self._ask(f"{start}/reset", Phase.RESET)
        times = WorkTimes(work=work_s, again=tuple(again), reset=reset_s)
        findings.append(judge_repeated(times, self._of(start)))
        findings.append(await self._check_repeated_at_work(times))
        findings.append(await self._check_stop(times))
        findings.append(judge_reset(reset_s, self._of(start), self._of(f"{start}/reset")))
        offered = self._command_id(4)
        await self._ask(offered, Phase.START, is_again=True)
        findings.append(judge_offered_again(self._of(offered)))
        findings.append(await self._check_other_parameters(start))
        if self._lock:
            findings.append(await self._check_lock())
        detail = "it must have begun four times at most, one of them stopped: count"
        return [*findings, CheckFinding("work", Grade.OK, detail)]

    async def _check_repeated_at_work(self, times: WorkTimes) -> CheckFinding:
        """Send a start a second time in the middle of its work."""
        command_id, pause_s = self._command_id(2), times.half
        await self._send(command_id, Phase.START)
        await asyncio.sleep(pause_s)
        await self._send(command_id, Phase.START, is_again=True)
        if await self._time_answer(command_id, 1) is not None:
            await self._time_answer(command_id, 2, self._watch_s(times))
        return judge_repeated_at_work(times, self._of(command_id))

    async def _check_other_parameters(self, command_id: str) -> CheckFinding:
        """Send a start again under the id of an answered one, with other parameters."""
        before = len(self._of(command_id))
        await self._send(command_id, Phase.START, parameters={**self._parameters, "check": "another command"})
        await self._time_answer(command_id, before + 1)
        return judge_other_parameters(self._of(command_id)[before:])

    async def _check_stop(self, times: WorkTimes) -> CheckFinding:
        """Stop a start in the middle of its work, and watch whether the work continues."""
        command_id, began = self._command_id(3), time.monotonic()
        await self._send(command_id, Phase.START)
        await asyncio.sleep(times.half)
        before = len(self._of(command_id))
        if await self._ask(command_id, Phase.STOP) is None:
            return judge_confirmed(Phase.STOP, None)
        await self._changed.wait_until(lambda: self._has_result(command_id, before + 1), self._watch_s(times))
        return judge_stop(times, began, self._of(command_id)[before:])

    async def _check_lock(self) -> CheckFinding:
        """Send a start without the permission to work, and end it."""
        command_id = self._command_id(5)
        await self._permit(b"false")
        await self._ask(command_id, Phase.START)
        answers = tuple(self._of(command_id))
        await self._ask(command_id, Phase.STOP)
        return judge_lock(answers)

    def _watch_s(self, times: WorkTimes) -> float:
        return min(self._answer_s, _LONGER * times.measurable)

    def _has_result(self, command_id: str, after: int) -> bool:
        return any(answer.is_result for answer in self._of(command_id)[after:])

    def _command_id(self, attempt: int) -> str:
        return f"{self._job_id}/check/work/{attempt}"

    def _of(self, command_id: str) -> list[TimedAnswer]:
        return self._answers.get(command_id, [])

    async def _ask(self, command_id: str, phase: Phase, *, is_again: bool = False) -> float | None:
        """Send a command; return the seconds until the next answer to it, None when none comes in time."""
        before = len(self._of(command_id))
        await self._send(command_id, phase, is_again=is_again)
        return await self._time_answer(command_id, before + 1)

    async def _send(
        self,
        command_id: str,
        phase: Phase,
        *,
        is_again: bool = False,
        parameters: Mapping[str, object] | None = None,
    ) -> bool:
        event = CloudEvent(
            id=command_id,
            source=_SOURCE,
            type=self._type_id,
            subject=self._scope,
            correlationid=_correlation_id(command_id),
            extensions={"phase": phase.value} | ({"offeredagain": "true"} if is_again else {}),
            data=CommandData(self._job_id, "work", 1, dict(self._parameters if parameters is None else parameters)),
        )
        return await self._session.send(
            to_message(event, f"{self._topic}/commands", response_topic=f"{self._topic}/answers")
        )

    async def _time_answer(self, command_id: str, count: int, within_s: float | None = None) -> float | None:
        """Return the seconds until there are `count` answers to a command; None when there are fewer in time."""
        began = time.monotonic()
        limit_s = self._answer_s if within_s is None else within_s
        if await self._changed.wait_until(lambda: len(self._of(command_id)) >= count, limit_s):
            return time.monotonic() - began
        return None

    async def _take_answer(self, message: Message) -> None:
        command_id = message.user_properties.get("causationid", "")
        self._answers.setdefault(command_id, []).append(TimedAnswer(time.monotonic(), message))
        self._changed.set()

    async def _take_permission(self, message: Message) -> None:
        if message.retain:
            self._permission = message.payload

    async def _take_presence(self, message: Message) -> None:
        self._presence = message.payload
        self._changed.set()


def _correlation_id(command_id: str) -> str:
    """Return the correlation id of a command: the same each time it is sent."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{_SOURCE}/{command_id}"))
