"""The strict controller builds and takes the frames that the specification of Open Protocol shows (release 2.8.0)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.outside.devices import openprotocol_frames as frames
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

RESULT: dict[str, int | str] = {
    "cell": 1,
    "channel": 1,
    "name": "airbag7",
    "vin": "KPOL3456JKLO897",
    "job": 0,
    "pset": 3,
    "batch_size": 0,
    "batch_counter": 0,
    "ok": 0,
    "torque_ok": 0,
    "angle_ok": 1,
    "torque_min": 840,
    "torque_max": 1400,
    "torque_target": 1200,
    "torque": 739,
    "angle_min": 0,
    "angle_max": 9999,
    "angle_target": 0,
    "angle": 0,
    "time": "2001-06-02:09:54:09",
    "changed": "2001-05-29:12:34:33",
    "batch_ok": 2,
    "number": 123345675,
}


def test_example_of_the_greeting_is_built_as_published() -> None:
    built = frames.frame(2, frames.started(1, {"cell": 1, "channel": 1, "name": "Airbag1"}))
    assert built == b"00570002001         010001020103Airbag1                  \0"


def test_example_of_a_result_is_built_as_published() -> None:
    built = frames.result(1, RESULT)
    published = (
        "010001020103airbag7                  04KPOL3456JKLO897          0500060030700000800000901001111200084013001400"
        "140012001500073916000001709999180000019000002020"
    )
    assert built.startswith(published[:-1])
    assert built.endswith("202001-06-02:09:54:09212001-05-29:12:34:33222230123345675")
    assert len(frames.frame(61, built)) == 232


def test_example_of_an_old_result_is_built_as_published() -> None:
    values = dict(RESULT)
    values |= {"number": 456789, "vin": "AIRBAG", "pset": 1, "batch_counter": 2, "torque": 1467, "angle": 46}
    values |= {"time": "2001-04-22:14:54:34", "batch_ok": 2, "torque_ok": 0, "angle_ok": 0}
    assert frames.old_result(1, values) == (
        "01000045678902AIRBAG                   03001040002050060070080014670900046102001-04-22:14:54:34112"
    )


@pytest.mark.parametrize(
    ("revision", "length"), [(1, 231), (2, 385), (3, 419), (4, 500), (5, 506), (6, 526), (999, 121)]
)
def test_result_of_each_revision_ends_at_the_published_byte(revision: int, length: int) -> None:
    assert frames.HEADER + len(frames.result(revision, RESULT)) == length


@pytest.mark.parametrize(("revision", "length"), [(1, 57), (2, 62), (3, 125), (4, 163), (5, 173), (6, 221)])
def test_greeting_of_each_revision_ends_at_the_published_byte(revision: int, length: int) -> None:
    assert frames.HEADER + len(frames.started(revision, {})) == length


class Peer:
    """A client that writes bytes and reads messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._buffer = bytearray()

    async def ask(self, message: bytes) -> str:
        """Write a message and return the next one that comes, without its end."""
        self._writer.write(message)
        return await self.next()

    async def next(self) -> str:
        """Return the next message, empty when the connection is closed."""
        async with asyncio.timeout(10):
            while True:
                for message in frames.split(self._buffer):
                    return message.decode("latin-1")
                received = await self._reader.read(4096)
                if not received:
                    return ""
                self._buffer += received


@asynccontextmanager
async def peer(controller: StrictController) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", controller.port)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()


async def test_published_subscription_to_traces_is_accepted_with_its_mid() -> None:
    """Both examples of chapter 5.27.1: the answer carries MID 0900, not 0008 or 0009."""
    async with open_strict_controller() as controller, peer(controller) as client:
        assert (await client.ask(b"00200001003         \0"))[4:11] == "0002003"
        subscribe = b"006400080010        0900001350" + b" " * 29 + b"01001\0"
        assert await client.ask(subscribe) == "00240005001         0900"
        assert await client.ask(subscribe) == "00260004001         090071"
        assert await client.ask(b"003400090010        09000010501001\0") == "00240005001         0900"
        assert controller.violations == []


async def test_link_level_exchange_follows_the_published_figures() -> None:
    """Figures 8 to 10: numbers from 1 in each direction, a repetition has no effect, a wrong one is an error."""
    async with open_strict_controller(Quirks(link=True)) as controller, peer(controller) as client:
        greeting = await client.ask(b"00200001006         \0")
        assert greeting[173:176] == "121"
        subscribe = b"00200060001     01  \0"
        assert await client.ask(subscribe) == "00249997001     02  0060"
        assert await client.next() == "00240005001     01  0060"
        assert await client.ask(b"00249997001     02  0005\0" + subscribe) == "00249997001     02  0060"
        assert controller.mids() == [1, 60]
        assert await client.ask(b"00200014001     03  \0") == "00289998001     02  00140003"
        assert controller.violations == ["MID 0014 has the number 3, expected 2"]


async def test_result_is_sent_three_times_until_the_connection_is_lost() -> None:
    """Chapter 4.3.3: without acknowledgement the message is sent again, then the connection is given up."""
    quirks = Quirks(ack_seconds=0.05)
    async with open_strict_controller(quirks, Habits(absent=True)) as controller, peer(controller) as client:
        await client.ask(b"00200001            \0")
        assert await client.ask(b"00200060            \0") == "00240005001         0060"
        controller.tool.tighten()
        assert [(await client.next())[4:8] for _ in range(4)] == ["0061", "0061", "0061", ""]
        assert controller.acknowledged == []
