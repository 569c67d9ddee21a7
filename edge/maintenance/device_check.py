"""Checks a device over MQTT as the gateway will use it: one finding for each thing that the gateway expects."""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from edge.errors import Refused
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.equipment_data import CommandData
from edge.sfc.signal import Phase
from edge.southbound.mqtt_answer import complete_answer

_SOURCE = "urn:microdcs-edge:device-check"
_REQUIRED = ("specversion", "id", "source", "type")


class Grade(StrEnum):
    """The grade of a finding; the gateway tolerates a `note`, a strict check does not."""

    OK = "ok"
    NOTE = "note"
    FAILED = "failed"


class CheckFinding(msgspec.Struct, frozen=True):
    """A finding of a check."""

    check: str
    grade: Grade
    detail: str


@dataclass(slots=True)
class DeviceCheck:
    """The gateway's side of a device on `{topic}/commands`; `answer_s` is how long an answer may take."""

    session: MqttSession
    topic: str
    type_id: str
    scope: str
    answer_s: float
    parameters: Mapping[str, object] = field(default_factory=dict)
    _presence: bytes | None = None
    _answers: dict[str, list[Message]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> list[CheckFinding]:
        """Run all checks, in order. Raises Unavailable when the broker is unavailable."""
        await self.session.subscribe(f"{self.topic}/answers", self._take_answer)
        await self.session.follow(f"{self.topic}/presence", self._take_presence)
        await self._wait(lambda: self._presence is not None, 1.0)
        findings = [self._check_presence()]
        start = f"{uuid.uuid4().hex[:8]}/check/work/1"
        if not await self._send(start, Phase.START):
            return [
                *findings,
                CheckFinding("subscription", Grade.FAILED, f"nothing subscribes to {self.topic}/commands"),
            ]
        findings.append(CheckFinding("subscription", Grade.OK, f"it receives {self.topic}/commands"))
        findings += await self._check_start(start)
        findings.append(await self._check_repeated(start))
        stopped = start.replace("/1", "/2")
        await self._send(stopped, Phase.START)
        findings.append(await self._check_confirmed(stopped, Phase.STOP))
        findings.append(await self._check_confirmed(f"{start}/reset", Phase.RESET))
        findings.append(await self._check_offered_again(start.replace("/1", "/3")))
        return findings

    def _check_presence(self) -> CheckFinding:
        match self._presence:
            case b"online":
                return CheckFinding("presence", Grade.OK, "a retained message says online")
            case None:
                detail = f"no retained message on {self.topic}/presence: commands that it lost are sent again late"
                return CheckFinding("presence", Grade.NOTE, detail)
            case other:
                return CheckFinding("presence", Grade.FAILED, f"expected online, found {other[:40]!r}")

    async def _check_start(self, command_id: str) -> Iterable[CheckFinding]:
        if not await self._answered(command_id, 1):
            return [
                CheckFinding("start", Grade.FAILED, f"no answer with causationid {command_id} in {self.answer_s:g} s")
            ]
        return list(_judge_answer(self._answers[command_id][0]))

    async def _check_repeated(self, command_id: str) -> CheckFinding:
        check, before = "repeated start", len(self._answers.get(command_id, ()))
        await self._send(command_id, Phase.START, is_again=True)
        if not await self._answered(command_id, before + 1):
            return CheckFinding(check, Grade.FAILED, "it does not answer a start again that it has answered")
        first, last = self._answers[command_id][0], self._answers[command_id][-1]
        if first.payload != last.payload:
            return CheckFinding(check, Grade.FAILED, "the second answer differs: it may have done the work again")
        return CheckFinding(check, Grade.OK, "the same answer came again")

    async def _check_confirmed(self, command_id: str, phase: Phase) -> CheckFinding:
        before = len(self._answers.get(command_id, ()))
        await self._send(command_id, phase)
        if await self._answered(command_id, before + 1):
            return CheckFinding(phase.value, Grade.OK, f"an answer confirms the {phase.value}")
        detail = f"no answer confirms the {phase.value}: the gateway sends it again every minute, for ever"
        return CheckFinding(phase.value, Grade.FAILED, detail)

    async def _check_offered_again(self, command_id: str) -> CheckFinding:
        check = "start that was offered before"
        await self._send(command_id, Phase.START, is_again=True)
        if not await self._answered(command_id, 1):
            return CheckFinding(check, Grade.FAILED, "no answer: it has to do the work, or to answer unknown")
        kind = self._answers[command_id][0].user_properties.get("mdcserrorkind")
        if kind == "unknown":
            return CheckFinding(check, Grade.OK, "it answers unknown: it has no memory of the time before")
        return CheckFinding(check, Grade.OK, "it works: its memory has to survive a restart")

    async def _send(self, command_id: str, phase: Phase, *, is_again: bool = False) -> bool:
        event = CloudEvent(
            id=command_id,
            source=_SOURCE,
            type=self.type_id,
            subject=self.scope,
            correlationid=str(uuid.uuid4()),
            extensions={"phase": phase.value} | ({"offeredagain": "true"} if is_again else {}),
            data=CommandData(command_id.split("/", maxsplit=1)[0], "work", 1, dict(self.parameters)),
        )
        return await self.session.send(
            to_message(event, f"{self.topic}/commands", response_topic=f"{self.topic}/answers")
        )

    async def _answered(self, command_id: str, count: int) -> bool:
        return await self._wait(lambda: len(self._answers.get(command_id, ())) >= count, self.answer_s)

    async def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _take_answer(self, message: Message) -> None:
        self._answers.setdefault(message.user_properties.get("causationid", ""), []).append(message)
        self._changed.set()

    async def _take_presence(self, message: Message) -> None:
        self._presence = message.payload
        self._changed.set()


def _judge_answer(message: Message) -> Iterator[CheckFinding]:
    """Yield the findings about an answer."""
    check = "start"
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


def has_passed(findings: Iterable[CheckFinding], *, strict: bool) -> bool:
    """Return whether the gateway can work with the device; a strict check tolerates no note."""
    tolerated = {Grade.OK} if strict else {Grade.OK, Grade.NOTE}
    return all(each.grade in tolerated for each in findings)
