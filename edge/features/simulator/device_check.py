"""Checks a device over MQTT as the gateway will use it: one finding for each thing that the gateway expects."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from edge.equipment.change_signal import ChangeSignal
from edge.features.simulator.device_findings import (
    CheckFinding,
    Grade,
    TimedAnswer,
    WorkTimes,
    judge_answer,
    judge_confirmed,
    judge_lock,
    judge_offered_again,
    judge_other_parameters,
    judge_presence,
    judge_repeated,
    judge_repeated_at_work,
    judge_reset,
    judge_stop,
)
from edge.links.mqtt import Message, MqttSession, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.equipment_data import CommandData
from edge.sfc.signal import Phase

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
