"""The file of a result over OPC UA is fetched in parts and closed; a failed transfer never loses the result."""

import asyncio
from collections import Counter
from functools import partial
from typing import Any, cast

import pytest

from edge.equipment.result_file import ResultFileReader
from edge.foundation.errors import Unavailable
from edge.links.file_transfer import TransferTimes
from edge.links.opcua import ClientSession, Node
from tests.equipment.contract import NEXT, WORK
from tests.equipment.recording_station import RecordingStation

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2500
TRANSFER = Node("ns=1;i=7", "/transfer")


class Session:
    """A session with a device whose answers to a method, in order, are prepared; the last one repeats."""

    def __init__(self, **answers: list[Any]) -> None:
        usual: dict[str, list[Any]] = {"GenerateFileForRead": [["ns=1;i=9", 1, None]], "Close": [[]]}
        self.answers = usual | answers
        self.called: list[str] = []

    async def call(self, _owner: Node, name: str, *_arguments: Any) -> list[Any]:
        self.called.append(name)
        answers = self.answers[name]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return cast("list[Any]", found)

    async def children(self, _node: Node) -> dict[str, Node]:
        return {}

    def forget(self, _owner: Node) -> None:
        self.called.append("forgotten")


def reader(session: Session, station: RecordingStation, transfer: Node | None = TRANSFER) -> ResultFileReader:
    tries: Counter[tuple[str, str]] = Counter()
    times, late = TransferTimes(5.0, 1.0), TransferTimes(0.01, 1.0)
    return ResultFileReader(cast("ClientSession", session), transfer, station, tries, times, late)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"GenerateFileForRead": [["i=0", 1, None]]}, "not what OPC 10000-20 says"),
        ({"Read": [["text"]]}, "not what OPC 10000-20 says"),
        ({"Read": [[b"1" * (1 << 20)]]}, "not what OPC 10000-20 says"),
        ({"GenerateFileForRead": [["ns=1;i=9", 1, "ns=1;i=10"]]}, "has no state"),
    ],
    ids=["no file", "text", "more than asked", "no state"],
)
async def test_invalid_answer_loses_only_the_file(answers: dict[str, list[Any]], error: str) -> None:
    session = Session(**answers)
    found = await reader(session, RecordingStation()).read(WORK.command_id, "R1", None)
    assert error in found["error"]
    assert session.called.count("Close") == session.called.count("forgotten")


async def test_missing_transfer_object_is_reported_as_a_file_error() -> None:
    found = await reader(Session(), RecordingStation(), None).read(WORK.command_id, "R1", None)
    assert found == {"error": "the device announces a file, and has no ResultTransfer"}


async def test_repeated_connection_loss_in_a_transfer_loses_only_the_file() -> None:
    lost = partial(Session, Read=[Unavailable("lost")], Close=[Unavailable("lost")])
    files = reader(lost(), RecordingStation())
    for _ in range(2):
        with pytest.raises(Unavailable):
            await files.read(WORK.command_id, "R1", None)
    found = await files.read(WORK.command_id, "R1", None)
    assert found["error"] == "the connection was lost at each transfer of the file"
    for command_id, result_id in ((WORK.command_id, "R2"), (NEXT.command_id, "R1")):
        with pytest.raises(Unavailable):
            await files.read(command_id, result_id, None)


async def test_transfer_that_takes_too_long_is_the_last_of_late_results() -> None:
    """The result of the next command waits behind them."""

    class Slow(Session):
        async def call(self, _owner: Node, name: str, *_arguments: Any) -> list[Any]:
            self.called.append(name)
            if name == "Read":
                await asyncio.Event().wait()
            return await super().call(_owner, name)

    session = Slow()
    files = reader(session, RecordingStation())
    first = await files.read_late(WORK.command_id, None)
    second = await files.read_late(NEXT.command_id, None)
    assert first["error"] == "the transfer of the file took more than 0.01 s"
    assert second["error"] == "an earlier transfer of a file took too long"
    assert session.called.count("Read") == 1
