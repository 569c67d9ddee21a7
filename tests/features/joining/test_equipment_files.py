"""The files of a batch: its own and those of its joinings, wherever the controller reports these."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from edge.equipment.result_file import ResultFileReader
from edge.features.joining.conversion import answer_data
from edge.features.joining.equipment import JoiningFiles
from edge.links.opcua import ClientSession
from tests.equipment.contract import WORK


class Session:
    """A session that makes structures."""

    async def structure(self, _: object, value: Mapping[str, Any]) -> Any:
        return value


class Reader:
    """A reader that records which file it read for which command."""

    def __init__(self) -> None:
        self.read_files: list[tuple[str, str, Any]] = []

    async def read(self, command_id: str, result_id: str, options: Any) -> Mapping[str, Any]:
        self.read_files.append((command_id, result_id, options))
        return {"file": result_id}

    async def read_late(self, command_id: str, options: Any) -> Mapping[str, Any]:
        return await self.read(command_id, options["ResultId"], options)


def joining(result_id: str, *held: Any, offers: bool = True, classification: int = 1) -> dict[str, Any]:
    meta = {"ResultId": result_id, "HasTransferableDataOnFile": offers, "Classification": classification}
    return {"ResultMetaData": meta, "ResultContent": list(held)}


def files(reader: Reader) -> JoiningFiles:
    return JoiningFiles(cast("ClientSession", Session()), cast("ResultFileReader", reader))


JOININGS = (joining("N1"), joining("N2", offers=False), joining("N3"))


@pytest.mark.parametrize("is_flat", [False, True], ids=["held", "flat"])
async def test_each_joining_that_offers_a_file_has_it(*, is_flat: bool) -> None:
    batch = joining("N4", *(() if is_flat else JOININGS), classification=3)
    data, reader = answer_data(batch, JOININGS), Reader()
    await files(reader).add(WORK, batch, JOININGS, data)
    assert [result.get("file") for result in (data, *data["results"].values())] == [
        {"file": "N4"},
        {"file": "N1"},
        None,
        {"file": "N3"},
    ]
    assert reader.read_files[0] == (WORK.command_id, "N4", {"ResultId": "N4"})


async def test_spindles_within_a_late_batch_have_their_files() -> None:
    batch = joining("N9", joining("N8", joining("N7"), offers=False), offers=False)
    data, reader = answer_data(batch), Reader()
    await files(reader).add_late(WORK.command_id, batch, data)
    assert data["results"]["1"]["results"]["1"]["file"] == {"file": "N7"}
    assert len(reader.read_files) == 1


async def test_files_are_left_alone_unless_the_settings_want_them() -> None:
    data = answer_data(joining("N1"))
    await JoiningFiles(cast("ClientSession", Session()), None).add(WORK, joining("N1"), (), data)
    assert "file" not in data
