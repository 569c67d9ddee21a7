"""Checks a device over MQTT as the gateway will use it: one finding for each thing that the gateway expects."""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec
from msgspec import Struct

from edge.errors import Refused
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent, correlation_bytes
from edge.model.equipment_data import CommandData
from edge.sfc.signal import Phase
from edge.southbound.change_signal import ChangeSignal
from edge.southbound.mqtt_answer import complete_answer

_SOURCE = "urn:microdcs-edge:device-check"
_REQUIRED = ("specversion", "id", "source", "type")
_MEASURABLE_S = 0.2
_AS_LONG_AGAIN = 0.7
"""An answer from memory takes a smaller part than this of the time that the work took."""


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
    ) -> None:
        """Create a check; `answer_s` is how long an answer may take."""
        self._session = session
        self._topic = topic
        self._type_id = type_id
        self._scope = scope
        self._answer_s = answer_s
        self._parameters = parameters
        self._presence: bytes | None = None
        self._answers: dict[str, list[Message]] = {}
        self._changed = ChangeSignal()

    async def run(self) -> list[CheckFinding]:
        """Run all checks, in order. Raises Unavailable when the broker is unavailable."""
        await self._session.subscribe(f"{self._topic}/answers", self._take_answer)
        await self._session.follow(f"{self._topic}/presence", self._take_presence)
        await self._changed.wait_until(lambda: self._presence is not None, 1.0)
        findings = [self._check_presence()]
        start = f"{uuid.uuid4().hex[:8]}/check/work/1"
        if not await self._send(start, Phase.START):
            detail = f"nothing subscribes to {self._topic}/commands"
            return [*findings, CheckFinding("subscription", Grade.FAILED, detail)]
        findings.append(CheckFinding("subscription", Grade.OK, f"it receives {self._topic}/commands"))
        worked = await self._time_answer(start, 1)
        findings += self._judge_start(start, answered=worked is not None)
        again = await self._ask(start, Phase.START, is_again=True)
        stopped = start.replace("/1", "/2")
        await self._send(stopped, Phase.START)
        stop_s = await self._ask(stopped, Phase.STOP)
        reset_s = await self._ask(f"{start}/reset", Phase.RESET)
        latency = min(each for each in (stop_s, reset_s, self._answer_s) if each is not None)
        findings.append(self._judge_repeated(start, worked, again, latency))
        findings.append(_judge_confirmed(Phase.STOP, stop_s))
        findings.append(self._judge_reset(start, reset_s))
        offered = start.replace("/1", "/3")
        await self._ask(offered, Phase.START, is_again=True)
        findings.append(self._judge_offered_again(offered))
        findings.append(
            CheckFinding("work", Grade.OK, "it must have begun three times at most, one of them stopped: count")
        )
        return findings

    def _check_presence(self) -> CheckFinding:
        match self._presence:
            case b"online":
                return CheckFinding("presence", Grade.OK, "a retained message says online")
            case None:
                detail = f"no retained message on {self._topic}/presence: commands that it lost are sent again late"
                return CheckFinding("presence", Grade.NOTE, detail)
            case other:
                return CheckFinding("presence", Grade.FAILED, f"expected online, found {other[:40]!r}")

    def _judge_start(self, command_id: str, *, answered: bool) -> Iterator[CheckFinding]:
        if answered:
            yield from _judge_answer(self._answers[command_id][0], _correlation_id(command_id))
            return
        detail = f"no answer with causationid {command_id} in {self._answer_s:g} s"
        if others := [each or "(none)" for each in self._answers]:
            detail += f"; an answer came with causationid {', '.join(others[:3])}"
        yield CheckFinding("start", Grade.FAILED, detail)

    def _judge_repeated(
        self, command_id: str, worked: float | None, again: float | None, latency: float
    ) -> CheckFinding:
        """Return the finding about a repeated start; `latency` is how long the device takes to answer without work."""
        check = "repeated start"
        if worked is None or again is None:
            return CheckFinding(check, Grade.FAILED, "it does not answer a start again that it has answered")
        first, last = self._answers[command_id][0], self._answers[command_id][-1]
        if first.payload != last.payload:
            return CheckFinding(check, Grade.FAILED, "the second answer differs: it may have done the work again")
        if worked >= _MEASURABLE_S and again >= _AS_LONG_AGAIN * worked and again > 2 * latency:
            detail = (
                f"the same answer after {again:.1f} s, as long as the work ({worked:.1f} s): it may have worked again"
            )
            return CheckFinding(check, Grade.NOTE, detail)
        return CheckFinding(check, Grade.OK, "the same answer came again")

    def _judge_reset(self, start: str, took: float | None) -> CheckFinding:
        finding, answers = _judge_confirmed(Phase.RESET, took), self._answers.get(start)
        if took is None or not answers:
            return finding
        work, reset = (_members(each[0].payload) for each in (answers, self._answers[f"{start}/reset"]))
        if reset and reset == work:
            detail = "the answer looks like that of a start: it may ignore phase; a reset must start nothing"
            return CheckFinding(finding.check, Grade.NOTE, detail)
        return finding

    def _judge_offered_again(self, command_id: str) -> CheckFinding:
        check, answers = "start that was offered before", self._answers.get(command_id)
        if not answers:
            return CheckFinding(check, Grade.FAILED, "no answer: it has to do the work, or to answer unknown")
        if answers[0].user_properties.get("mdcserrorkind") == "unknown":
            return CheckFinding(check, Grade.OK, "it answers unknown: it has no memory of the time before")
        return CheckFinding(check, Grade.OK, "it works: its memory has to survive a restart")

    async def _ask(self, command_id: str, phase: Phase, *, is_again: bool = False) -> float | None:
        """Send a command; return the seconds until the next answer to it, None when none comes in time."""
        before = len(self._answers.get(command_id, ()))
        await self._send(command_id, phase, is_again=is_again)
        return await self._time_answer(command_id, before + 1)

    async def _send(self, command_id: str, phase: Phase, *, is_again: bool = False) -> bool:
        event = CloudEvent(
            id=command_id,
            source=_SOURCE,
            type=self._type_id,
            subject=self._scope,
            correlationid=_correlation_id(command_id),
            extensions={"phase": phase.value} | ({"offeredagain": "true"} if is_again else {}),
            data=CommandData(command_id.split("/", maxsplit=1)[0], "work", 1, dict(self._parameters)),
        )
        return await self._session.send(
            to_message(event, f"{self._topic}/commands", response_topic=f"{self._topic}/answers")
        )

    async def _time_answer(self, command_id: str, count: int) -> float | None:
        began = time.monotonic()
        if await self._changed.wait_until(lambda: len(self._answers.get(command_id, ())) >= count, self._answer_s):
            return time.monotonic() - began
        return None

    async def _take_answer(self, message: Message) -> None:
        self._answers.setdefault(message.user_properties.get("causationid", ""), []).append(message)
        self._changed.set()

    async def _take_presence(self, message: Message) -> None:
        self._presence = message.payload
        self._changed.set()


def _correlation_id(command_id: str) -> str:
    """Return the correlation id of a command: the same each time it is sent."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{_SOURCE}/{command_id}"))


def _members(payload: bytes) -> frozenset[str]:
    """Return the names of the members of a JSON object; of other data, none."""
    try:
        return frozenset(msgspec.json.decode(payload, type=dict[str, object]))
    except msgspec.MsgspecError:
        return frozenset()


def _judge_confirmed(phase: Phase, took: float | None) -> CheckFinding:
    if took is None:
        detail = f"no answer confirms the {phase.value}: the gateway sends it again every minute, for ever"
        return CheckFinding(phase.value, Grade.FAILED, detail)
    return CheckFinding(phase.value, Grade.OK, f"an answer confirms the {phase.value}")


def _judge_answer(message: Message, correlation_id: str) -> Iterator[CheckFinding]:
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
    if message.correlation_data is not None and message.correlation_data != correlation_bytes(correlation_id):
        yield CheckFinding("correlation data", Grade.NOTE, "they are not those of the command: return its 16 bytes")


def has_passed(findings: Iterable[CheckFinding], *, strict: bool) -> bool:
    """Return whether the gateway can work with the device; a strict check tolerates no note."""
    tolerated = {Grade.OK} if strict else {Grade.OK, Grade.NOTE}
    return all(each.grade in tolerated for each in findings)
