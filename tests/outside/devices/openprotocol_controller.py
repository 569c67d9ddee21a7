"""A strict controller with Open Protocol, written from the published specification (release 2.8.0).

It knows nothing of the product. It notes as a violation whatever the specification does not allow a client, and its
tool keeps a physical log of its own. What makes do differently are its quirks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.outside.devices import openprotocol_frames as frames
from tests.outside.devices.openprotocol_quirks import COMMANDS, ENDS, REQUESTS, REVISION, SUBSCRIPTIONS, Quirks
from tests.outside.devices.openprotocol_session import Client, Data
from tests.outside.devices.openprotocol_tool import Habits, Tool

_ANOTHER_CLIENT, _UNKNOWN = 96, 99
_NO_SET, _NO_RESULT, _NO_JOB, _NO_JOB_RUNS, _NO_ALARM = 2, 15, 17, 21, 58
_INVALID, _SUBSCRIBED_MID, _SPECIFIC_DATA, _EXISTS, _MISSING = 1, 73, 78, 71, 72
_LOCKED_RELAY = 30
_JOBS = {1: 3, 2: 2}


class Decline(Exception):
    """A message that is declined, with its error."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


@asynccontextmanager
async def open_strict_controller(
    quirks: Quirks | None = None, habits: Habits | None = None, *, port: int = 0
) -> AsyncIterator["StrictController"]:
    """Serve a controller at a loopback port for the length of the block."""
    controller = StrictController(quirks or Quirks(), Tool(habits or Habits()))
    await controller.listen(port)
    operator = asyncio.create_task(controller.tool.operate())
    try:
        yield controller
    finally:
        operator.cancel()
        await asyncio.wait((operator,))
        await controller.close()


class StrictController:
    """The controller: `violations` of the specification by its clients, `received` messages in order, `tool`."""

    def __init__(self, quirks: Quirks, tool: Tool) -> None:
        self.quirks = quirks
        self.tool = tool
        self.port = 0
        self.violations: list[str] = []
        self.received: list[tuple[int, int, str]] = []
        """Number, revision and data of each message that a client has sent."""
        self.acknowledged: list[int] = []
        """The places of the results, from 1 on, whose receipt a client has confirmed."""
        self.connections = 0
        self.alarm = ""
        self._clients: dict[Client, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        tool.on_result = self._publish_result
        tool.on_change = lambda: self._publish(217, lambda _: self._relay())

    async def listen(self, port: int = 0) -> None:
        """Accept clients."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close the port and every connection."""
        if self._server:
            self._server.close()
            for client in tuple(self._clients):
                client.break_off()
            if self._clients:
                await asyncio.wait(self._clients.values())
            self._server = None

    @asynccontextmanager
    async def unplugged(self) -> AsyncIterator[None]:
        """Take the network away for the length of the block; the tool works on."""
        await self.close()
        try:
            yield
        finally:
            await self.listen(self.port)

    def mids(self) -> list[int]:
        """Return the numbers of the messages that clients have sent, in order."""
        return [mid for mid, _, _ in self.received]

    def raise_alarm(self, code: str = "E851") -> None:
        """Report an alarm that stops the tool."""
        self.alarm = code
        self.tool.disable()
        self._publish(71, lambda _: frames.fields(frames.ALARM, self._alarm_values(ready=0)))

    def send_again(self) -> None:
        """Send the last result again, as after an acknowledgement that was lost."""
        self._publish_result(self.tool.results[-1])

    async def flood(self, data: bytes) -> None:
        """Send bytes to every client as they are; return when they are sent or the connections are gone."""
        for client in tuple(self._clients):
            with suppress(OSError):
                await client.write_raw(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or not self._server.is_serving():
            # Accepted just before the port was closed: `close` does not know it.
            writer.transport.abort()
            return
        self.connections += 1
        self.tool.note("connected")
        client = Client(self.quirks, reader, writer, self.violations, self._confirm)
        serving = asyncio.create_task(client.run(lambda mid, revision, data: self._handle(client, mid, revision, data)))
        self._clients[client] = serving
        try:
            await asyncio.wait((serving,))
        finally:
            del self._clients[client]
            self.tool.note("disconnected")

    def _confirm(self, place: int) -> None:
        self.acknowledged.append(place)
        self.tool.note("acknowledged", place)

    def _handle(self, client: Client, mid: int, revision: int, data: str) -> None:
        self.received.append((mid, revision, data))
        if mid in self.quirks.unanswered:
            return
        if mid == 1:
            self._start(client, revision)
        elif not client.started:
            # The controller does not respond to any other command before 0001.
            self.violations.append(f"MID {mid:04d} before MID 0001")
        elif mid == 9999:
            client.reply(9999, "")
        else:
            named = int(data[:4]) if mid in {8, 9} and data[:4].isdigit() else mid
            try:
                self._act(client, mid, revision, data)
            except Decline as declined:
                client.reply(4, f"{mid if self.quirks.names_request else named:04d}{declined.error:02d}")

    def _start(self, client: Client, revision: int) -> None:
        quirks = self.quirks
        if len(self._clients) > quirks.clients:
            client.reply(4, f"0001{_ANOTHER_CLIENT}")
            return
        if revision > quirks.newest_start and not quirks.own:
            if not quirks.silent:
                client.reply(4, f"0001{quirks.start_error:02d}")
            if quirks.closes:
                client.close_when_sent()
            return
        revision = min(revision, quirks.newest_start)
        values: dict[str, Any] = {"cell": 1, "channel": 1, "name": "STRICT", "supplier": "ACT", "protocol": "2.8.0"}
        values |= {"software": "1.0", "system": 3, "subsystem": 1, "sequence": int(quirks.link), "linking": 0}
        values |= {"station": 1, "station_name": "STATION", "client": 1} | dict(quirks.greeting)
        client.start(has_link=quirks.link and revision >= 6)
        client.reply(2, frames.started(revision, values)[: quirks.greeting_length], revision)

    def _act(self, client: Client, mid: int, revision: int, data: str) -> None:
        if mid in self.quirks.refused:
            raise Decline(self.quirks.refused[mid])
        if mid == 3:
            client.reply(5, "0003")
            client.started = False
            client.subscriptions.clear()
        elif mid in {8, 9}:
            self._subscribe_generic(client, mid, data)
        elif mid in SUBSCRIPTIONS:
            self._subscribe(client, mid, revision, data)
        elif mid in ENDS:
            if client.subscriptions.pop(ENDS[mid], None) is None:
                raise Decline(_MISSING)
            client.reply(5, f"{mid:04d}")
        elif mid in COMMANDS:
            newest, lengths = COMMANDS[mid]
            self._demand(mid, revision, newest, data, lengths)
            self._command(mid, data)
            client.reply(5, f"{mid:04d}")
            if mid == 50:
                self._publish(52, lambda _: self.tool.vin.ljust(25))
        elif mid in REQUESTS:
            newest, lengths = REQUESTS[mid]
            self._demand(mid, revision, newest, data, lengths)
            if mid != 64:
                client.reply(*self._answer(mid, revision, data))
            elif (number := int(data)) not in self.quirks.unanswered_results:
                late, answer = self.quirks.late_results.pop(number, 0.0), self._answer(mid, revision, data)
                asyncio.get_running_loop().call_later(late, client.reply, *answer)
        else:
            raise Decline(_UNKNOWN)

    def _demand(self, mid: int, revision: int, newest: int, data: str, lengths: Mapping[int, int]) -> None:
        if revision > newest:
            raise Decline(REVISION)
        wanted = lengths.get(revision, 0)
        if mid == 50:
            if len(data) > wanted:
                raise Decline(_INVALID)
        elif len(data) != wanted:
            self.violations.append(f"MID {mid:04d} has the data {data!r}, not {wanted} bytes")
            raise Decline(_INVALID)

    def _subscribe(self, client: Client, mid: int, revision: int, data: str) -> None:
        event, newest, error = SUBSCRIPTIONS[mid]
        if mid == 60:
            if revision not in {999, *range(1, self.quirks.newest_result + 1)}:
                raise Decline(self.quirks.result_error)
        elif revision > newest:
            raise Decline(REVISION)
        if mid == 216 and data != f"{_LOCKED_RELAY:03d}":
            raise Decline(_INVALID)
        if mid == 100 and not self.quirks.spindles:
            raise Decline(30)
        if event in client.subscriptions:
            raise Decline(error)
        client.subscriptions[event] = revision
        client.reply(5, f"{mid:04d}")
        # The present value follows at once where the specification says so.
        if mid == 14:
            client.push(15, frames.fields("pset:3 changed:19t", self._selected(), first=None), 1)
        if mid == 216:
            client.push(217, self._relay(), 1)
        if mid == 70 and self.alarm:
            client.push(76, "011" + frames.fields(frames.ALARM, self._alarm_values(ready=0), first=2), 1)
        if mid in {60, 100} and self.quirks.resends:
            for place in range(len(self.acknowledged) + 1, len(self.tool.results) + 1):
                self._push_result(client, place)

    def _subscribe_generic(self, client: Client, mid: int, data: str) -> None:
        """Subscribe by MID 0008, end by MID 0009 (5.2.7, 5.27.1.1): both are answered with the MID subscribed for."""
        event, extra = int(data[:4]), data[9:]
        if len(extra) != int(data[7:9]):
            self.violations.append(f"MID {mid:04d} announces {data[7:9]} bytes of extra data, {len(extra)} came")
            raise Decline(_INVALID)
        if event not in {900, 901}:
            raise Decline(_SUBSCRIBED_MID)
        if mid == 9:
            if client.subscriptions.pop(event, None) is None:
                raise Decline(_MISSING)
        elif event == 900:
            self._demand_traces(extra)
        elif 900 not in client.subscriptions:
            # Plots without a curve: "Subscription does not exists".
            raise Decline(_MISSING)
        if mid == 8:
            if event in client.subscriptions:
                raise Decline(_EXISTS)
            client.subscriptions[event] = 1
        client.reply(5, f"{mid if self.quirks.names_request else event:04d}")

    def _demand_traces(self, extra: str) -> None:
        """Demand the extra data of table 158: alternative, time stamp, index, number of traces, their types."""
        alternative, count, types = extra[:1], extra[30:32], extra[32:]
        if alternative != "0" or not count.isdigit() or len(types) != 3 * int(count):
            self.violations.append(f"the extra data of MID 0900 are {extra!r}")
            raise Decline(_INVALID)
        if not {types[at : at + 3] for at in range(0, len(types), 3)} <= {"001", "002"}:
            raise Decline(_SPECIFIC_DATA)

    def _command(self, mid: int, data: str) -> None:
        tool = self.tool
        match mid:
            case 18:
                self._select(int(data))
            case 19:
                self._known_set(int(data[:3]), zero=True)
                tool.batch_size = int(data[3:])
            case 20:
                self._known_set(int(data))
                tool.batch_counter = 0
            case 38 | 39:
                if int(data) not in _JOBS:
                    raise Decline(_NO_JOB)
                self._select(_JOBS[int(data)])
                tool.job = int(data)
            case 42:
                tool.disable()
            case 43:
                if self.alarm:
                    raise Decline(27)
                tool.enable()
            case 50:
                tool.vin = data.rstrip()
            case 78:
                if not self.alarm:
                    raise Decline(_NO_ALARM)
                self.alarm = ""
            case 127:
                if not tool.job:
                    raise Decline(_NO_JOB_RUNS)
                tool.job = 0
            case _:
                pass

    def _select(self, pset: int) -> None:
        self._known_set(pset)
        self.tool.pset, self.tool.job = pset, 0
        self.tool.batch_size, self.tool.batch_counter = 1, 0
        self._publish(15, lambda _: frames.fields("pset:3 changed:19t", self._selected(), first=None))

    def _known_set(self, pset: int, *, zero: bool = False) -> None:
        if pset not in self.tool.parameter_sets and not (zero and pset == 0):
            raise Decline(_NO_SET)

    def _answer(self, mid: int, revision: int, data: str) -> tuple[int, str, int]:
        tool = self.tool
        match mid:
            case 10:
                numbers = "".join(f"{index:03d}" for index in tool.parameter_sets)
                return 11, f"{len(tool.parameter_sets):03d}{numbers}", revision
            case 12:
                self._known_set(int(data))
                target = tool.target(int(data))
                values: dict[str, int | str] = {"pset": int(data), "name": f"SET {int(data)}", "direction": 1}
                values |= {"torque_min": target * 9 // 10, "torque_max": target * 11 // 10, "torque_target": target}
                return 13, frames.fields(frames.PARAMETER_SET, values), revision
            case 30:
                width = 2 if revision == 1 else 4
                return 31, "".join(f"{index:0{width}d}" for index in (len(_JOBS), *_JOBS)), revision
            case 40:
                values = {"serial": "STRICT-1", "tightenings": len(tool.results)}
                return 41, frames.fields(frames.TOOL, values), revision
            case 80:
                return 81, self._selected()["changed"], revision
            case _:
                number = int(data)
                found = [result for result in tool.results if number in {0, result["number"]}]
                if not found:
                    raise Decline(_NO_RESULT)
                return 65, frames.old_result(revision, found[-1]), revision

    def _publish_result(self, values: Mapping[str, int | str]) -> None:
        place = next(n for n, result in enumerate(self.tool.results, 1) if result is values)
        for client in self._clients:
            self._push_result(client, place)

    def _push_result(self, client: Client, place: int) -> None:
        values = self.tool.results[place - 1]
        number, time, torque = int(values["number"]), str(values["time"]), int(values["torque"])
        if 61 in client.subscriptions:
            revision = client.subscriptions[61]
            client.push(61, frames.result(revision, values), revision, place)
        if 101 in client.subscriptions:
            records = [(n, int(values["ok"]), torque, 42) for n in range(1, self.quirks.spindles + 1)]
            client.push(101, frames.spindles(values, records), 1, place)
        if 900 in client.subscriptions and self.quirks.points:
            for kind, final in ((1, 4200), (2, torque)):
                samples = [final * n // self.quirks.points for n in range(1, self.quirks.points + 1)]
                client.push(900, frames.trace(number, time, kind, samples), 1)
        if 901 in client.subscriptions:
            client.push(901, frames.plot(number, time, torque * 9 // 10, torque * 11 // 10), 1)

    def _publish(self, mid: int, data: Callable[[int], Data]) -> None:
        for client in self._clients:
            if mid in client.subscriptions:
                client.push(mid, data(client.subscriptions[mid]), client.subscriptions[mid])

    def _relay(self) -> str:
        return f"01{_LOCKED_RELAY:03d}02{int(not self.tool.enabled)}"

    def _selected(self) -> dict[str, Any]:
        return {"pset": self.tool.pset, "changed": "2026-01-01:00:00:00"}

    def _alarm_values(self, *, ready: int) -> dict[str, int | str]:
        return {"code": self.alarm, "controller_ready": ready, "tool_ready": ready, "time": "2026-01-01:00:00:00"}
