"""Tests of the stored reply to an equipment event."""

import pytest

from edge.foundation.errors import Refused
from edge.station.equipment import Kept, Task
from edge.station.event_reply import EventReply, decode_reply, encode_reply


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
