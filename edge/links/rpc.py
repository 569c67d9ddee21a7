"""A MessagePack-RPC client for programs on the same host or network, which reconnects by itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import structlog

from edge.foundation.backoff import Backoff
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text
from edge.links.cloudevent_rpc import from_map, to_map
from edge.links.rpc_transport import MESSAGE_BYTES, READ_BYTES, Frames, Notification, Request, Response, connect, encode
from edge.model.cloudevent import CloudEvent

OnEvent = Callable[[CloudEvent], Awaitable[None]]

ANSWER_SECONDS = 10.0
HEARTBEAT_SECONDS = 30.0
_EVENTS_WAITING = 1000
_LARGEST_ID = 0xFFFF_FFFF
_ADVICE = "Send the same event again: it has one effect."

logger = structlog.get_logger(__name__)


@asynccontextmanager
async def open_client(
    url: str,
    *,
    ca_file: str = "",
    cert_file: str = "",
    key_file: str = "",
    on_event: OnEvent | None = None,
    heartbeat: float = HEARTBEAT_SECONDS,
) -> AsyncIterator["Client"]:
    """Connect to a gateway at `url` and stay connected until the end of the block.

    `on_event` is called with each event of the gateway; events during an interruption are missed. With
    `tls:` a certificate is needed. `heartbeat` is in seconds. An order that is stored and started:

        async with open_client("unix:///run/microdcs-edge/rpc.sock", on_event=show) as client:
            order = {"JobOrder": {"JobOrderID": "J1", "WorkMasterID": [{"ID": "WM-AXLE-FIT-001"}]}}
            event_type = "org.opcfoundation.ISA95-JOBCONTROL_V2.StoreAndStart.v2"
            answer = await client.publish(CloudEvent(id=new_id(), source="/stand", type=event_type, data=order))
            assert answer.data == {"ReturnStatus": 1}, answer.mdcserrormessage
    """

    async def dial() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await connect(url, ca_file=ca_file, cert_file=cert_file, key_file=key_file)

    client = Client(dial, on_event, heartbeat)
    async with background_task(client.run(), f"rpc client {url}"):
        yield client


class Client:
    """Calls the gateway. A call that meets an interruption raises Unavailable; the same event again has one effect."""

    def __init__(
        self,
        dial: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
        on_event: OnEvent | None,
        heartbeat: float,
    ) -> None:
        self._dial = dial
        self._on_event = on_event
        self._heartbeat = heartbeat
        self._connected: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        self._ids = count()
        self._asked: dict[int, asyncio.Future[Response | None]] = {}
        self._events: asyncio.Queue[Mapping[Any, Any]] = asyncio.Queue(_EVENTS_WAITING)

    @property
    def connected(self) -> bool:
        """Whether the client is connected."""
        return self._connected.done()

    async def publish(self, event: CloudEvent, transportmetadata: Mapping[str, str] | None = None) -> CloudEvent:
        """Publish an event to the gateway and return its answer; raises as `call` does."""
        answers = await self.call("publish", to_map(event), dict(transportmetadata or {}))
        match answers:
            case [dict(answer)]:
                return from_map(answer)
            case _:
                raise Refused(
                    "unreadable",
                    Text.of("the gateway answered {answers}", answers=repr(answers)),
                    "Is it a gateway of this version?",
                )

    async def call(self, method: str, *params: object, within: float = ANSWER_SECONDS) -> Any:
        """Call a method and return its result; waits while disconnected.

        Raises Refused with the gateway's reason, Unavailable when the gateway cannot execute it now or does not answer
        `within` so many seconds.
        """
        id = next(self._ids) & _LARGEST_ID
        frame = encode(Request(id, method, params))
        if len(frame) > MESSAGE_BYTES:
            raise Refused(
                "too_large",
                Text.of("the call takes {count} bytes", count=len(frame)),
                Text.of("The most is {message_bytes}.", message_bytes=MESSAGE_BYTES),
            )
        answer = self._asked[id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within):
                writer = await asyncio.shield(self._connected)
                if not writer.is_closing():
                    writer.write(frame)
                    await writer.drain()
                    return _result(await answer)
        except TimeoutError:
            raise Unavailable(
                Text.of("no answer to {method!r} within {within:g} s", method=method, within=within), _ADVICE
            ) from None
        except OSError as error:
            raise Unavailable(Text.of("the connection is lost: {reason}", reason=error), _ADVICE) from None
        finally:
            del self._asked[id]
        return _result(None)

    async def run(self) -> None:
        """Keep connected until cancelled."""
        async with TaskGroup() as tasks:
            tasks.create_task(self._stay_connected(), name="rpc connection")
            tasks.create_task(self._hand_over(), name="rpc events")

    async def _stay_connected(self) -> None:
        backoff = Backoff(shortest=0.05, longest=10.0, stable=30.0)
        failing = False
        while True:
            try:
                reader, writer = await self._dial()
            except Unavailable as error:
                if not failing:
                    logger.warning("rpc not connected, retrying", reason=error.message)
                failing = True
            else:
                failing = False
                await self._use(reader, writer)
            await backoff.pause()

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connected.set_result(writer)
        logger.info("rpc connected")
        try:
            async with background_task(self._beat(writer), "rpc heartbeat"):
                await self._read(reader)
        finally:
            self._connected = asyncio.get_running_loop().create_future()
            writer.transport.abort()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_result(None)
            logger.info("rpc connection lost")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        frames = Frames()
        try:
            while data := await reader.read(READ_BYTES):
                frames.feed(data)
                for message in frames:
                    match message:
                        case Response():
                            self._settle(message)
                        case Notification("cloudevent", [dict(event), *_]):
                            self._take(event)
                        case Notification("closing", [reason, *_]):
                            logger.warning("rpc connection closed by the gateway", reason=reason)
                        case _:
                            logger.debug("rpc message unknown", message=message)
        except Refused as refusal:
            logger.warning("rpc message malformed", reason=refusal.message)
        except OSError as error:
            logger.debug("rpc connection lost", reason=str(error))

    def _settle(self, response: Response) -> None:
        answer = self._asked.get(response.id)
        if answer is not None and not answer.done():
            answer.set_result(response)

    def _take(self, event: Mapping[Any, Any]) -> None:
        if self._on_event is None:
            return
        if self._events.full():
            logger.warning("rpc event dropped, handler too slow", type=event.get("type"), id=event.get("id"))
            return
        self._events.put_nowait(event)

    async def _hand_over(self) -> None:
        while True:
            event = await self._events.get()
            if self._on_event is not None:
                try:
                    await self._on_event(from_map(event))
                except Exception:
                    # An event that a handler cannot digest must not stop those behind it.
                    logger.exception("rpc event could not be handled", type=event.get("type"), id=event.get("id"))

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        """Send a heartbeat at intervals; abort the connection when it is not answered."""
        while True:
            await asyncio.sleep(self._heartbeat)
            try:
                await self.call("heartbeat", int(time.time()))
            except (Unavailable, Refused) as error:
                logger.warning("rpc heartbeat not answered", reason=error.message)
                writer.transport.abort()
                return


def _result(response: Response | None) -> Any:
    if response is None:
        raise Unavailable("the connection is lost", _ADVICE)
    if response.error is None:
        return response.result
    kind, _, reason = str(response.error).partition(": ")
    raise Unavailable(reason, _ADVICE) if kind == "unavailable" else Refused(kind, reason)
