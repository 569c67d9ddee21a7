"""Equipment that speaks CloudEvents over MQTT 5; open commands are sent once on each connection."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

import msgspec.structs
import structlog

from edge.config import MqttEquipmentSettings
from edge.equipment.mqtt_answer import (
    command_of_answer,
    declined_stop,
    job_of_answer,
    read_answer,
    read_event,
    refusal_answer,
    task_answer,
    to_answer,
    to_equipment_event,
)
from edge.equipment.mqtt_presence import presence_state, require_broker
from edge.equipment.repetition import chosen_repetition, count_repeated_start
from edge.foundation.backoff import delay
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.links.mqtt import Message, MqttSession, SubscriptionRefused, to_message
from edge.links.mqtt_subscription import matches
from edge.model.cloudevent import CloudEvent
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_data import CommandData
from edge.model.equipment_health import OpenSafing
from edge.sfc.signal import Phase
from edge.station.equipment import Begin, Command, EquipmentAnswer, OutcomeUnknown, Repetition, StationPort
from edge.station.safing_tries import SafingTries
from edge.store.background import retry_while_unavailable
from edge.store.dead_letters import RefusedMessage

_AWAITED = (Phase.START, Phase.RESET)
"""The phases that wait for an answer: these are sent again."""


class SentCommands:
    """The starts and resets without an answer; `connection` returns the number of the current connection."""

    def __init__(self, connection: Callable[[], int]) -> None:
        self._connection = connection
        self._sent_on: dict[tuple[str, Phase], int] = {}
        self._undelivered: set[str] = set()
        self._maybe_delivered: set[tuple[str, Phase]] = set()

    def may_be_delivered(self, command_id: str, phase: Phase) -> bool:
        """Return whether a command was sent before, and some subscriber may have it."""
        return (command_id, phase) in self._maybe_delivered

    def is_sent(self, command: Command) -> bool:
        """Return whether the broker has a command on this connection, or is about to have it."""
        return self._sent_on.get((command.command_id, command.phase)) == self._connection()

    def is_undelivered(self, command_id: str) -> bool:
        """Return whether a command was sent and certainly had no subscriber the last time."""
        return command_id in self._undelivered

    def begin(self, command_id: str, phase: Phase) -> None:
        """Record that a command is being sent; from now on the equipment may have it."""
        if phase in _AWAITED:
            self._undelivered.discard(command_id)
            self._sent_on[command_id, phase] = self._connection()

    def end(self, command_id: str, phase: Phase, *, delivered: bool | None) -> None:
        """Record whether a subscriber had the command; None when the broker did not confirm it."""
        if delivered is not False and phase in _AWAITED:
            self._maybe_delivered.add((command_id, phase))
        if delivered:
            return
        self._sent_on.pop((command_id, phase), None)
        if delivered is False and phase in _AWAITED:
            self._undelivered.add(command_id)

    def forget(self, command_id: str) -> None:
        """Forget a command that has an answer or a stop."""
        self._undelivered.discard(command_id)
        for phase in _AWAITED:
            self._sent_on.pop((command_id, phase), None)
            self._maybe_delivered.discard((command_id, phase))

    def forget_all(self) -> None:
        """Forget what was sent: the equipment came back and may have lost it."""
        self._sent_on.clear()


WAIT_S = 10.0
"""Time for answers that the broker still has, and for a work that is about to end."""
_REASON = Text.of("it may have been sent before, and no answer has come")
_REASON_OF_FAILOVER = Text.of("its answer may have been lost in a failover of the store")

logger = structlog.get_logger(__name__)


class LostAnswers:
    """The starts of one piece of equipment that must not be repeated, and to which no answer may come.

    A gateway may have ended between the begun mark and the start. After a failover of the store, the gateway may have
    acknowledged the answer when the former primary had stored it. An answer that comes later is still the outcome.
    """

    def __init__(self, equipment: str, station: StationPort, wait_s: float = WAIT_S) -> None:
        self._equipment = equipment
        self._station = station
        self._wait_s = wait_s
        self._noted: asyncio.Queue[tuple[float, OutcomeUnknown]] = asyncio.Queue()
        self._watched: set[str] = set()

    def note(self, command_id: str, begin: Begin) -> Text:
        """Watch a start that may have been sent: without an answer its outcome is unknown after a while.

        Return the reason.
        """
        reason = _REASON_OF_FAILOVER if begin is Begin.LOST else _REASON
        if command_id not in self._watched:
            self._watched.add(command_id)
            due = asyncio.get_running_loop().time() + self._wait_s
            self._noted.put_nowait((due, OutcomeUnknown(command_id, reason)))
        return reason

    async def run(self) -> None:
        """Report unknown outcomes until cancelled."""
        while True:
            due, unknown = await self._noted.get()
            command_id = unknown.command_id
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if await retry_while_unavailable("lost answer", partial(self._station.is_outstanding, command_id)):
                event = "no answer to a start that may have been sent"
                logger.warning(event, equipment=self._equipment, command=command_id, reason=str(unknown.reason))
                await retry_while_unavailable("lost answer", partial(self._station.answer, unknown))
            self._watched.discard(command_id)


_PAYLOADS = {True: b"true", False: b"false"}


class ToolPermission:
    """Publishes whether a command needs the tool; `outstanding` returns the commands without an answer."""

    def __init__(
        self,
        session: MqttSession,
        topic: str,
        outstanding: Callable[[], Awaitable[Sequence[Command]]],
        clock: Clock = now_ms,
    ) -> None:
        self.topic = f"{topic}/enabled"
        self._session = session
        self._outstanding = outstanding
        self._clock = clock
        self._publishing = asyncio.Lock()
        self._tries: SafingTries | None = None
        self._failed = asyncio.Event()

    @property
    def open_release(self) -> OpenSafing | None:
        """The change of the permission that the broker has not confirmed; None when it has."""
        return None if self._tries is None else self._tries.described("release")

    async def grant(self) -> None:
        """Enable the tool before a start is sent. Raises Unavailable without the broker."""
        async with self._publishing:
            await self._publish(is_needed=True)

    async def update(self) -> None:
        """Enable or disable the tool by the commands without an answer; `keep_updating` repeats one that fails."""
        try:
            async with self._publishing:
                is_needed = await self._is_needed()
                await self._publish(is_needed=is_needed)
                # Another gateway may have enabled it between the two.
                if not is_needed and await self._is_needed():
                    await self._publish(is_needed=True)
        except Unavailable as error:
            tries = self._tries or SafingTries(self._clock())
            self._tries = tries.tried(asyncio.get_running_loop().time(), error.text)
            self._failed.set()
        else:
            self._tries = None

    async def keep_updating(self) -> None:
        """Repeat failed updates at the intervals of `SafingTries`, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._failed.wait()
            self._failed.clear()
            while self._tries is not None:
                await asyncio.sleep(self._tries.due_s - loop.time())
                if self._tries is not None:
                    await self.update()

    async def _is_needed(self) -> bool:
        return any(command.phase is Phase.START for command in await self._outstanding())

    async def _publish(self, *, is_needed: bool) -> None:
        await self._session.send(Message(self.topic, _PAYLOADS[is_needed], retain=True))


_OFFER_RETRY_SECONDS = (1.0, 60.0)
"""The shortest and the longest delay before a command without a subscriber is sent again."""

_log = structlog.get_logger(__name__)


async def open_equipment(
    name: str,
    settings: MqttEquipmentSettings,
    session: MqttSession,
    station: StationPort,
    scopes: Collection[str],
    source: str,
) -> "MqttEquipment":
    """Subscribe to the topics of the equipment `name` for the life of the session; return its port.

    The equipment executes the jobs of `scopes`; `source` is the CloudEvents source of our messages. The session retries
    a refused subscription.
    """
    equipment = MqttEquipment(name, settings, session, station, scopes, source)
    with suppress(SubscriptionRefused):
        # The answers to commands of other jobs do not wait for the commit of one.
        await session.subscribe(
            equipment.answers_topic, equipment.handle_answer, on_poison=equipment.fail_command, key=job_of_answer
        )
    for topic in equipment.event_topics:
        with suppress(SubscriptionRefused):
            await session.subscribe(topic, equipment.handle_event, on_poison=equipment.refuse_event)
    with suppress(SubscriptionRefused):
        await session.follow(equipment.presence_topic, equipment.handle_presence)
    return equipment


class MqttEquipment:
    """One piece of equipment on `{topic prefix}/{name}/commands`, `answers`, `events`, `data` and `presence`.

    `present` is the presence that the equipment published, None before its first message; `connection_count` counts
    how often it came online.
    """

    def __init__(
        self,
        name: str,
        settings: MqttEquipmentSettings,
        session: MqttSession,
        station: StationPort,
        scopes: Collection[str],
        source: str,
    ) -> None:
        topic = f"{settings.topic_prefix}/{name}"
        self.name = name
        self.can_pause = settings.pause == "on"
        self.commands_topic = f"{topic}/commands"
        self.answers_topic = f"{topic}/answers"
        self.event_topics = (f"{topic}/events", f"{topic}/data")
        self.presence_topic = f"{topic}/presence"
        self.present: bool | None = None
        self._own_topics = f"{topic}/"
        self._response_topics = settings.response_topics
        self._repetition = chosen_repetition(settings, Repetition.RECOGNISABLE)
        self._session = session
        self._station = station
        self._scope = next(iter(scopes), "")
        self._source = source
        self._outstanding = partial(station.outstanding, scopes, settings.type_ids)
        self._permission = ToolPermission(session, topic, self._outstanding) if settings.lock == "on" else None
        self._sent = SentCommands(lambda: session.connection_count)
        self.lost_answers = LostAnswers(name, station)
        self._offer_due = asyncio.Event()
        self._offering = asyncio.Lock()
        self._has_subscriber = True
        self._faults = LogThrottle(_log)
        self._births = 0
        self._since: int | None = None

    @property
    def connection_count(self) -> int:
        """How often it came online or the broker was connected: each time a stop may have been lost before."""
        return self._births + self._session.connection_count

    @property
    def connected(self) -> bool | None:
        """Whether the equipment is present: False without its broker, None before its first presence message."""
        return self.connection.connected

    @property
    def connection(self) -> ConnectionState:
        """The presence of the equipment, or why its broker is not connected."""
        return presence_state(self._session, self._since, present=self.present)

    @property
    def problem(self) -> str | Text:
        """Reason why the connected equipment cannot execute commands; empty when it can."""
        return "" if self._has_subscriber else Text.of("nothing subscribes to {topic}", topic=self.commands_topic)

    @property
    def open_release(self) -> OpenSafing | None:
        """The permission of its tool that the broker has not taken; None when it has."""
        return self._permission.open_release if self._permission else None

    def repetition_of(self, type_id: str) -> Repetition:
        """Return what a start that is sent a second time may do."""
        return self._repetition

    async def send(self, command: Command) -> None:
        """Send a start; return when the broker has it. A start that must not be repeated is sent once.

        Raises Unavailable for one that a gateway may have sent before its end, until it has an answer; without one its
        outcome is unknown.
        """
        begin = await self._start(command)
        if begin in {Begin.AGAIN, Begin.LOST}:
            # It stays in the outbox: this gateway may end before the outcome is stored, too.
            raise Unavailable(self.lost_answers.note(command.command_id, begin), "Its answer is the outcome.")

    async def _start(self, command: Command) -> Begin:
        """Send a start that is new, and return NEW; it is new until a subscriber may have received it."""
        if not command.offered_again and self._sent.is_sent(command):
            return Begin.NEW
        require_broker(self._session, self.name)
        await self._station.permit_start()
        is_once = self._repetition is Repetition.ONCE
        if is_once and (begin := await self._station.begin(command.command_id)) is not Begin.NEW:
            _log.info("start not repeated", equipment=self.name, command=command.command_id)
            return begin
        if self._sent.may_be_delivered(command.command_id, Phase.START):
            command = msgspec.structs.replace(command, offered_again=True)
        count_repeated_start(self._station, command)
        try:
            if self._permission:
                await self._permission.grant()
            require_broker(self._session, self.name)
        except BaseException:
            # Also when cancelled: the start has not left.
            if is_once:
                self._station.withhold(command.command_id)
            raise
        await self._publish(command, Phase.START)
        if is_once and self._sent.is_undelivered(command.command_id):
            self._station.withhold(command.command_id)
        return Begin.NEW

    def withdraw(self, command_id: str) -> bool:
        """Forget a start that the broker had no subscriber for; return False for one that may have been received."""
        if not self._sent.is_undelivered(command_id) or self._sent.may_be_delivered(command_id, Phase.START):
            return False
        self._sent.forget(command_id)
        # Its permission was published before it.
        self._offer_due.set()
        return True

    async def reset(self, command: Command) -> None:
        """Send a reset; return when the broker has it."""
        await self._publish(command, Phase.RESET)

    async def stop(self, command: Command) -> None:
        """Request the stop of a command from the equipment."""
        self._sent.forget(command.command_id)
        await self._publish(command, Phase.STOP)
        await self._update_permission()

    async def pause(self, command: Command) -> None:
        """Request the pause or the resumption of a command from the equipment."""
        await self._publish(command, command.phase)

    async def handle_answer(self, message: Message) -> None:
        """Handle a message from the answers topic; one of a flood that no command waits for is counted only."""
        if not await self._station.admits(command_of_answer(message)):
            return
        try:
            event, result = read_answer(message, self._scope)
            answer = None if result else to_answer(event)
        except Refused as refusal:
            await self._lose_answer(message, refusal, Text.of("its answer cannot be read: {reason}", reason=refusal))
            return
        if result:
            named = {"equipment": self.name, "source": result.source, "result": result.key}
            self._faults.warning("unsolicited result", "unsolicited result", **named)
            await self._station.late(result)
        elif answer and (reason := declined_stop(event)):
            await self._station.stopped(answer.command_id, reason)
        elif answer:
            await self._station.answer(answer)
            self._sent.forget(answer.command_id)
        await self._update_permission()

    async def _update_permission(self) -> None:
        if self._permission:
            await self._permission.update()

    async def fail_command(self, message: Message, error: Exception) -> None:
        """End the command whose answer caused a defect in this software: no other answer will come."""
        refusal = _defect(Text.of("the answer"), error)
        await self._lose_answer(message, refusal, refusal.text)

    async def _lose_answer(self, message: Message, refusal: Refused, reason: Text) -> None:
        """End the command that an answer names, if it names one, and refuse the answer.

        The command fails if it may be repeated. Otherwise its outcome is unknown: the equipment has already answered.
        """
        if command_id := message.user_properties.get("causationid"):
            if self._repetition is Repetition.REPEATABLE:
                await self._station.answer(EquipmentAnswer(command_id, error=reason))
            else:
                await self._station.answer(OutcomeUnknown(command_id, reason))
            await self._update_permission()
        await self._refuse(message, refusal)

    async def refuse_event(self, message: Message, error: Exception) -> None:
        """Refuse an event that caused a defect in this software."""
        await self._refuse(message, _defect(Text.of("the event"), error))

    async def handle_event(self, message: Message) -> None:
        """Handle a message from the events or the data topic; reply to a request for work."""
        if message.response_topic and not self._may_answer(message.response_topic):
            reason = Text.of(
                "the response topic {response_topic!r} is not below {own_topics}",
                response_topic=message.response_topic,
                own_topics=self._own_topics,
            )
            await self._refuse(message, Refused("forbidden_topic", reason, "Allow it in response_topics."))
            return
        try:
            event = read_event(message)
            task = await self._station.event(to_equipment_event(event))
        except Refused as refusal:
            await self._refuse(message, refusal)
            return
        await self._session.answer(message, task_answer(event, task, self._source))

    def _may_answer(self, topic: str) -> bool:
        """Return whether a reply to a response topic is allowed.

        The topic must be below that of the equipment or match the settings; it must not be that of commands or answers.
        """
        if topic in {self.commands_topic, self.answers_topic}:
            return False
        allowed = any(matches(text, topic) for text in self._response_topics)
        return allowed or topic.startswith(self._own_topics)

    async def handle_presence(self, message: Message) -> None:
        """Handle a birth or a will; a birth sends all open commands again with the same ids."""
        self._since = now_ms()
        match message.payload:
            case b"online":
                self._faults.info("equipment online", "online", equipment=self.name)
                if not message.retain:
                    # The equipment came back just now. Without a persistent session it has lost the earlier commands.
                    self._sent.forget_all()
                await self._offer_outstanding()
                self.present = True
                self._births += 1
            case b"offline":
                self._faults.warning("equipment offline", "offline", equipment=self.name)
                self.present = False
            case _:
                await self._refuse(message, Refused("unreadable", "presence is neither online nor offline"))

    async def keep_offering(self) -> None:
        """Send open commands at the start and on each new connection: the broker may have lost them.

        While no client subscribes to the commands, send them again with growing delays.
        """

        def on_change(connected: bool) -> None:  # noqa: FBT001 - the argument of a session's listeners
            self._since = now_ms()
            if connected:
                self._offer_due.set()

        self._session.listeners.append(on_change)
        on_change(self._session.connected)
        try:
            async with TaskGroup() as tasks:
                tasks.create_task(self._offer_when_due(), name=f"commands to {self.name}")
                tasks.create_task(self.lost_answers.run(), name=f"lost answers of {self.name}")
                if self._permission:
                    tasks.create_task(self._permission.keep_updating(), name=f"permission of {self.name}")
        finally:
            self._session.listeners.remove(on_change)

    async def _offer_when_due(self) -> None:
        retries = 0
        while True:
            await self._wait_until_due(retries)
            try:
                await self._offer_outstanding()
            except Unavailable as error:
                _log.info("commands not offered again", equipment=self.name, reason=error.message)
                retries += 1
            else:
                retries = 0 if self._has_subscriber else retries + 1

    async def _wait_until_due(self, retries: int) -> None:
        """Wait for the next connection, or for the delay of a retry."""
        with suppress(TimeoutError):
            async with asyncio.timeout(delay(retries, *_OFFER_RETRY_SECONDS) if retries else None):
                await self._offer_due.wait()
        self._offer_due.clear()

    async def _offer_outstanding(self) -> None:
        async with self._offering:
            # Resets first: a start is not sent while the primary of the store is not confirmed.
            for command in sorted(await self._outstanding(), key=lambda order: order.phase is Phase.START):
                if command.queued:
                    # The sender of queued commands sends it and marks it as sent.
                    continue
                # The command may have been stopped, or sent by the sender, since the list was read.
                if await self._station.is_outstanding(command.command_id) and not self._sent.is_sent(command):
                    await self._offer_again(command)
            await self._update_permission()

    async def _offer_again(self, command: Command) -> None:
        """Send a command without an answer again; a start that must not be repeated only if it was never sent."""
        if command.phase is not Phase.START:
            await self._publish(command, command.phase)
        elif (begin := await self._start(command)) is Begin.LOST:
            # One of this generation was sent, and its answer is stored when it comes.
            self.lost_answers.note(command.command_id, begin)

    async def _publish(self, command: Command, phase: Phase) -> None:
        event = CloudEvent(
            id=command.command_id,
            source=self._source,
            type=command.type_id,
            subject=command.scope,
            correlationid=command.correlation_id,
            causationid=command.causation_id or None,
            extensions={**command.trace, "phase": phase.value}
            | ({"offeredagain": "true"} if command.offered_again else {}),
            expiryinterval=self._expiry(command, phase),
            data=CommandData(command.job_id, command.action, command.attempt, dict(command.parameters)),
        )
        message = to_message(event, self.commands_topic, response_topic=self.answers_topic)
        require_broker(self._session, self.name)
        self._sent.begin(command.command_id, phase)
        delivered = None
        try:
            delivered = await self._session.send(message)
        finally:
            self._sent.end(command.command_id, phase, delivered=delivered)
        self._has_subscriber = delivered
        if not delivered:
            self._faults.warning("command without subscriber", self.commands_topic, topic=self.commands_topic)
            if not self._offering.locked():
                self._offer_due.set()

    def _expiry(self, command: Command, phase: Phase) -> int | None:
        """Return the seconds until a start expires, rounded down, at least 1; None for stops and resets."""
        if phase is not Phase.START or command.expires_at is None:
            return None
        return max(1, (command.expires_at - self._station.now()) // 1000)

    async def _refuse(self, message: Message, refusal: Refused) -> None:
        """Record and log a refused message, and send the reason to its sender.

        The message is acknowledged only after this.
        """
        request = message.user_properties
        attributes = request.get("type", ""), request.get("id", "")
        await self._station.record_refusal(
            RefusedMessage(message.topic, *attributes, refusal.kind, refusal.text, message.payload)
        )
        self._faults.warning(
            "equipment message refused",
            f"{message.topic} {refusal.kind}",
            equipment=self.name,
            topic=message.topic,
            kind=refusal.kind,
            reason=refusal.message,
        )
        if not message.response_topic or self._may_answer(message.response_topic):
            await self._session.answer(message, refusal_answer(message, refusal, self._source))


def _defect(what: Text, error: Exception) -> Refused:
    return Refused(
        "internal", Text.of("{what} met a defect of this software: {name}", what=what, name=type(error).__name__)
    )
