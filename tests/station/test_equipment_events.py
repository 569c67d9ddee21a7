"""An event has its effect once; equipment beyond its share of the marks waits alone, with what jobs wait for."""

import msgspec
import pytest

from edge.foundation.errors import Refused, Unavailable
from edge.station.answers import Answers
from edge.station.equipment import EquipmentEvent, Kept, Task
from edge.station.equipment_events import EventReply, decode_reply, encode_reply
from edge.store.bounds import BoundedCount, MarksBySender
from tests.station.plant import DEDUPE_MS, SCOPE, Plant, linear, pull
from tests.station.plant import SCAN as SCAN_TYPE
from tests.station.test_answers import started

SCAN = EquipmentEvent("/reader", "1", SCAN_TYPE, SCOPE, {"code": "A"})


@pytest.fixture
async def scanning(plant: Plant) -> Plant:
    await plant.teach("scanning", linear(pull("scan", "first", parameters={"bolt": 1}), pull("scan", "second")))
    return plant


def _reader(plant: Plant, name: str = "reader") -> Answers:
    return Answers(plant.store, plant.runs, DEDUPE_MS, name=name)


async def _marks(plant: Plant) -> int:
    return len(await plant.store.execute("KEYS", f"{plant.store.keys.prefix}:cededupe:*"))


async def test_event_that_no_job_waits_for_leaves_no_long_mark(scanning: Plant) -> None:
    reader = _reader(scanning)
    for number in range(20):
        assert await reader.event(msgspec.structs.replace(SCAN, event_id=str(number))) is None
    assert await _marks(scanning) == 0


async def test_discarded_event_that_comes_again_passes_no_later_step(scanning: Plant) -> None:
    reader = _reader(scanning)
    assert await reader.event(SCAN) is None
    await started(scanning, "J1", master="scanning")
    assert await reader.event(SCAN) is None
    assert isinstance(await reader.event(msgspec.structs.replace(SCAN, event_id="2")), Task)


async def test_taken_event_that_comes_again_gets_the_same_reply(scanning: Plant) -> None:
    reader = _reader(scanning)
    await started(scanning, "J1", "J2", master="scanning")
    first = await reader.event(SCAN)
    assert isinstance(first, Task)
    assert first.job_id == "J1"
    assert await reader.event(SCAN) == first


async def test_equipment_beyond_its_share_waits_alone(scanning: Plant) -> None:
    await started(scanning, "J1", master="scanning")
    full = BoundedCount(250, 250)
    scanning.store.marks_by_sender = MarksBySender({"events:reader": full}, BoundedCount(250, 500))
    with pytest.raises(Unavailable, match="250 marks of events of reader"):
        await _reader(scanning).event(SCAN)
    # What no job waits for needs no mark and holds up nothing.
    assert await _reader(scanning).event(msgspec.structs.replace(SCAN, type_id="noise")) is None
    assert isinstance(await _reader(scanning, "camera").event(SCAN), Task)


@pytest.mark.parametrize("reply", [None, Kept("J1"), Task("J1", "a", {"bolt": 1})])
def test_reply_is_decoded_as_it_was_encoded(reply: EventReply) -> None:
    assert decode_reply(encode_reply(reply)) == reply


def test_reply_of_an_earlier_release_is_read() -> None:
    assert decode_reply('{"job_id":"J1","action":"a","parameters":{}}') == Task("J1", "a", {})
    assert decode_reply("null") is None


@pytest.mark.parametrize("text", ["[]", '{"status": 1}'])
def test_answer_to_another_kind_of_message_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="another message"):
        decode_reply(text)
