"""Messages of a controller are converted to device events."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import cast

from edge.equipment.device import DeviceEvents
from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.leased_equipment import OnlyLease
from edge.features.openprotocol.messages import ACKNOWLEDGED_UNREAD, ACKNOWLEDGEMENTS, device_events
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid, new_message
from edge.features.openprotocol.protocol.session import OpenProtocolSession
from tests.equipment.recording_station import RecordingStation


class Session:
    """A session with two messages."""

    received_at = 7.0

    async def messages(self) -> AsyncIterator[MidFrame]:
        yield new_message(Mid.IDENTIFIER_CHANGED, identifier="A")
        yield MidFrame(Mid.RESULT, b"no result")


def events_of(inbox: ResultInbox, earlier: Sequence[MidFrame]) -> DeviceEvents:
    session = cast("OpenProtocolSession", Session())
    return device_events(session, inbox, earlier, lambda _: False, OnlyLease().refuse_if_lost, confirms_at_once=True)


async def test_message_is_parsed_and_an_invalid_one_has_a_reason() -> None:
    station = RecordingStation()
    inbox = ResultInbox(partial(station.recall, "wrench"), partial(station.remember, "wrench"), "edge")
    events = events_of(inbox, ())
    found = [dict(event) async for event in events if isinstance(event, dict)]
    header = {"mid": Mid.IDENTIFIER_CHANGED, "revision": 1, "station": 0, "spindle": 0, "received": 7.0}
    assert found[0] == {"identifier": "A"} | header
    assert (found[1]["mid"], found[1]["data"]) == (Mid.RESULT, "no result")
    assert "expected parameter 01" in str(found[1]["unreadable"])


async def test_unsettled_results_come_first_on_each_connection() -> None:
    """They are confirmed: a connection that is lost before they are handled must not lose them."""
    station = RecordingStation()
    inbox = ResultInbox(partial(station.recall, "wrench"), partial(station.remember, "wrench"), "edge")
    key = await inbox.keep(MidFrame(Mid.RESULT, b"earlier"))
    for _connection in range(2):
        earlier = await inbox.unsettled()
        events = events_of(inbox, earlier)
        (event, *later) = [dict(event) async for event in events if isinstance(event, dict)]
        assert (event["data"], event["kept"], len(later)) == ("earlier", key, 2)


def test_results_are_acknowledged_at_once_only_when_they_cannot_be_read() -> None:
    assert set(ACKNOWLEDGED_UNREAD) - set(ACKNOWLEDGEMENTS) == {Mid.RESULT, Mid.SPINDLES_RESULT}
