"""A small MES: pushes station settings, calls job methods, waits for their answers and watches its jobs."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import structlog
from msgspec import Struct

from edge.config import MqttSettings
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.links.mqtt import Message, MqttSession, open_session, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import ALARM_METHOD_TYPE, CONFIG_TYPE, METHOD_TYPE
from edge.model.isa95 import IdCall, MethodAnswer, OrderCall, ReturnStatus
from edge.ports.alarm import AlarmCall, AlarmNotice, PublicAlarmChange

TOPIC_PREFIX = "app/jobs"
ANSWER_SECONDS = 60.0
# After a restart, the answers to earlier calls are useless.
SESSION_EXPIRY_SECONDS = 60

Watcher = Callable[[str, CloudEvent], Awaitable[None]]

_log = structlog.get_logger(__name__)


class MethodReply(Struct, frozen=True):
    """The reply of a job method; `reasons` explains a refusal in words."""

    status: ReturnStatus
    reasons: str = ""


@asynccontextmanager
async def open_mes(
    settings: MqttSettings, name: str = "mes", *, topic_prefix: str = TOPIC_PREFIX
) -> AsyncIterator["Mes"]:
    """Open a MES; `name` is also its MQTT client id. Raises Unavailable when the broker is unreachable."""
    async with open_session(settings, name, session_expiry=SESSION_EXPIRY_SECONDS) as session:
        mes = Mes(session, name, topic_prefix)
        await session.subscribe(mes.answers_topic, mes.take_answer)
        yield mes


class Mes:
    """The client of a MES on the northbound topics."""

    def __init__(self, session: MqttSession, name: str, topic_prefix: str) -> None:
        self.answers_topic = f"{topic_prefix}/answers/{name}"
        self._session = session
        self._source = f"/{name}"
        self._prefix = topic_prefix
        self._open: dict[str, asyncio.Future[CloudEvent]] = {}

    async def configure(
        self, scope: str, kind: str, data: object, *, method: str = "PUT", deadline: float = ANSWER_SECONDS
    ) -> None:
        """Push station settings of a kind (`workmaster`, `equipment`, ...); `method` is `PUT` or `DELETE`.

        Raises Refused with the faults that the station reports, Unavailable when no answer comes within `deadline`
        seconds.
        """
        event = CloudEvent(
            id=new_id(),
            source=self._source,
            type=CONFIG_TYPE.format(kind),
            subject=scope,
            correlationid=str(uuid.uuid4()),
            extensions={"method": method},
            data=data,
        )
        await self._ask(scope, event, deadline)

    async def call(
        self, scope: str, method: str, arguments: OrderCall | IdCall, *, deadline: float = ANSWER_SECONDS
    ) -> MethodReply:
        """Call a job method (`StoreAndStart`, `Stop`, ...) and return its reply.

        Raises Refused when the station cannot decode the call, Unavailable when no answer comes within `deadline`
        seconds.
        """
        named = arguments.job_order if isinstance(arguments, OrderCall) else arguments
        event = CloudEvent(
            id=new_id(),
            source=self._source,
            type=METHOD_TYPE.format(method),
            subject=scope,
            correlationid=correlation_of(named.job_order_id),
            data=arguments,
        )
        answer = await self._ask(scope, event, deadline)
        status = ReturnStatus(msgspec.convert(answer.data, MethodAnswer).return_status)
        return MethodReply(status, answer.mdcserrormessage or "")

    async def call_alarm(self, scope: str, method: str, arguments: AlarmCall) -> AlarmNotice:
        """Call a method of an alarm (`Acknowledge`, `Shelve`, ...) and return the alarm after it.

        Raises Refused when the alarm is unknown or its state does not allow it, Unavailable without an answer.
        """
        event = CloudEvent(
            id=new_id(),
            source=self._source,
            type=ALARM_METHOD_TYPE.format(method),
            subject=scope,
            correlationid=arguments.alarm_id,
            data=arguments,
        )
        answer = await self._ask(scope, event, ANSWER_SECONDS)
        return msgspec.convert(answer.data, AlarmNotice)

    async def watch_alarms(self, scope: str, watcher: Callable[[PublicAlarmChange], Awaitable[None]]) -> None:
        """Pass each change of an alarm of the station to `watcher`."""

        async def take(message: Message) -> None:
            await watcher(msgspec.convert(to_event(message).data, PublicAlarmChange))

        await self._session.subscribe(f"{self._prefix}/{scope}/alarms", take)

    async def watch(self, scope: str, watcher: Watcher) -> None:
        """Pass the job messages of the station to `watcher`, each with its topic relative to the scope.

        These are status events (`events`), progress (`data`), and the retained `order/{id}` and `result/{id}`.
        """
        base = f"{self._prefix}/{scope}/"

        async def take(message: Message) -> None:
            if not message.payload:
                # An empty payload deletes a retained document.
                return
            try:
                event = to_event(message)
            except Refused as refusal:
                _log.warning("message unreadable", topic=message.topic, reason=refusal.message)
                return
            await watcher(message.topic.removeprefix(base), event)

        for below in ("events", "data", "order/+", "result/+"):
            await self._session.subscribe(base + below, take)

    async def take_answer(self, message: Message) -> None:
        """Handle a message on the answers topic; drop an answer for which no call waits."""
        try:
            answer = to_event(message)
        except Refused as refusal:
            _log.warning("answer unreadable", reason=refusal.message)
            return
        waiting = self._open.get(answer.causationid or "")
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def _ask(self, scope: str, event: CloudEvent, deadline: float) -> CloudEvent:
        waiting: asyncio.Future[CloudEvent] = asyncio.get_running_loop().create_future()
        self._open[event.id] = waiting
        try:
            async with asyncio.timeout(deadline):
                await self._session.send(
                    to_message(event, f"{self._prefix}/{scope}/commands", response_topic=self.answers_topic)
                )
                answer = await waiting
        except TimeoutError:
            raise Unavailable(
                Text.of(
                    "no answer to {type} in scope {scope!r} within {deadline:g} s",
                    type=event.type,
                    scope=scope,
                    deadline=deadline,
                ),
                "Is the gateway running, and does it serve this scope?",
            ) from None
        finally:
            del self._open[event.id]
        if answer.mdcserrorkind:
            raise Refused(answer.mdcserrorkind, answer.mdcserrormessage or answer.mdcserrorkind)
        return answer


def correlation_of(job_order_id: str) -> str:
    """Return the correlation id of a job: the same for all its calls, in every run of the MES."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, job_order_id))
