"""A text of equipment is written when it changes, and survives a restart."""

from collections.abc import Mapping

from edge.equipment.remembered_text import RememberedText
from edge.foundation.errors import Unavailable
from tests.equipment.recording_station import RecordingStation


class Counting(RecordingStation):
    """A station that counts the writes; the first ones find the store unavailable."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.writes, self.left = 0, failures

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        self.writes += 1
        if self.writes <= self.left:
            raise Unavailable("the store is away")
        await super().remember(equipment, texts)


async def test_text_is_written_when_it_changes_and_recalled_after_a_restart() -> None:
    station = Counting()
    text = RememberedText(station, "wrench", "last_result")
    assert await text.recall() == ""
    for value in ("7", "7", "8"):
        await text.write(value)
    assert station.writes == 2
    assert await RememberedText(station, "wrench", "last_result").recall() == "8"


async def test_text_is_written_again_when_the_store_was_away() -> None:
    station = Counting(failures=1)
    text = RememberedText(station, "wrench", "last_result")
    await text.write("7")
    await text.write("7")
    assert await text.recall() == "7"
