"""The tables of messages: golden frames, lengths of the specification, encoding and decoding of each table."""

import re
from pathlib import Path
from typing import Any

import pytest

from edge.features.openprotocol.protocol.frame import FrameReader, encode_frame
from edge.features.openprotocol.protocol.mids import (
    LAYOUTS,
    Mid,
    decline_of,
    layout_of,
    new_message,
    parse_message,
    revisions_of,
)
from edge.foundation.errors import Refused

GOLDEN: dict[str, tuple[bytes, dict[str, Any]]] = {
    "0002": (
        (
            b"01250002003         010012020103WRENCH                   04ACT05OpenProtocol 2.8   06"
            b"Controller 7.1     07Tool 3.2           \0"
        ),
        {"cell": 12, "channel": 1, "name": "WRENCH", "supplier": "ACT", "software": "Controller 7.1"},
    ),
    "0004": (b"00260004001         006009\0", {"mid": 60, "error": 9}),
    "0005": (b"00240005001         0060\0", {"mid": 60}),
    "0011": (b"00320011001         003001002015\0", {"ids": [1, 2, 15]}),
    "0015": (b"00420015001         0032026-05-01:12:30:00\0", {"id": 3}),
    "0031": (b"00320031002         000200010002\0", {"ids": [1, 2]}),
    "0032": (b"00240032002         0007\0", {"id": 7}),
    "0039": (b"00220039001         07\0", {"id": 7}),
    "0052": (b"00450052001         WDB1HXQZKRAMPLE          \0", {"identifier": "WDB1HXQZKRAMPLE"}),
    "0061": (
        (
            b"02310061001         010012020103WRENCH                   04WDB1HXQZKRAMPLE          0507"
            b"0600307000108000109110111112007650130093501400850015008520160000017009991800000190004220"
            b"2026-05-01:12:30:00212026-04-30:08:00:00222230000000815\0"
        ),
        {"job": 7, "parameter_set": 3, "status": 1, "torque": 85.2, "angle": 42, "result": 815, "batch_status": 2},
    ),
    "0064": (b"00300064001         0000000815\0", {"result": 815}),
    "0065": (
        (
            b"01180065001         01000000081502WDB1HXQZKRAMPLE          030030400010510610710800852009"
            b"00042102026-05-01:12:30:00112\0"
        ),
        {"result": 815, "identifier": "WDB1HXQZKRAMPLE", "torque": 85.2, "angle": 42, "batch_status": 2},
    ),
    "0071": (b"00530071001         01E851020030042026-05-01:12:30:00\0", {"code": "E851", "tool_ready": 0}),
    "0076": (b"00560076001         01002E851031041052026-05-01:12:30:00\0", {"active": 0, "code": "E851"}),
    "0081": (b"00390081001         2026-05-01:12:30:00\0", {}),
    "9998": (b"00289998001     05  00610001\0", {"mid": 61, "error": 1}),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_frame_is_decoded_and_encoded(name: str) -> None:
    raw, expected = GOLDEN[name]
    (frame,) = FrameReader().feed(raw)
    values = parse_message(frame)
    assert frame.mid == int(name)
    assert {key: values[key] for key in expected} == expected
    assert encode_frame(frame) == raw
    assert new_message(frame.mid, frame.revision, **values).data == frame.data


@pytest.mark.parametrize(
    ("mid", "revision", "length"),
    [
        (Mid.STARTED, 1, 57),
        (Mid.STARTED, 2, 62),
        (Mid.STARTED, 3, 125),
        (Mid.PARAMETER_SET_REPLY, 1, 104),
        (Mid.JOB_INFO, 1, 63),
        (Mid.TOOL_REPLY, 1, 81),
        (Mid.RESULT, 1, 231),
        (Mid.RESULT, 2, 385),
        (Mid.RESULT, 3, 419),
        (Mid.RESULT, 4, 500),
        (Mid.RESULT, 5, 506),
        (Mid.RESULT, 6, 526),
        (Mid.RESULT, 999, 121),
        (Mid.OLD_RESULT_REPLY, 1, 118),
        (Mid.OLD_RESULT_REPLY, 2, 226),
        (Mid.ALARM, 1, 53),
        (Mid.ALARM_STATUS, 1, 56),
        (Mid.RELAY_SUBSCRIBE, 1, 23),
        (Mid.RELAY, 1, 28),
    ],
)
def test_message_has_the_length_of_the_specification(mid: Mid, revision: int, length: int) -> None:
    assert len(encode_frame(new_message(mid, revision))) - 1 == length


@pytest.mark.parametrize(
    ("mid", "revision"), [(mid, revision) for mid, tables in LAYOUTS.items() for revision in tables]
)
def test_every_message_is_unchanged_after_encoding_and_decoding(mid: int, revision: int) -> None:
    message = new_message(mid, revision)
    assert new_message(mid, revision, **parse_message(message)) == message
    names = [field.name for field in layout_of(mid, revision)]
    assert len(names) == len(set(names))


def test_unknown_newer_revision_is_read_by_the_newest_table() -> None:
    assert layout_of(Mid.STARTED, 7) == LAYOUTS[Mid.STARTED][6]
    assert layout_of(Mid.KEEP_ALIVE, 1) == ()


def test_revisions_are_tried_from_the_newest() -> None:
    assert revisions_of(Mid.STARTED) == (6, 5, 4, 3, 2, 1)
    assert revisions_of(Mid.ENABLE_TOOL) == (1,)


def test_decline_is_decoded_and_invalid_data_reports_its_message() -> None:
    (frame,) = FrameReader().feed(GOLDEN["0004"][0])
    assert decline_of(frame) == (60, 9)
    (broken,) = FrameReader().feed(b"00230061001         01x\0")
    with pytest.raises(Refused, match="MID 0061 revision 1: cell"):
        parse_message(broken)


def test_reference_page_lists_every_message() -> None:
    page = (Path(__file__).parents[4] / "docs/reference/openprotocol.md").read_text()
    cells = " ".join(re.findall(r"^\| (\d[^|]*)", page, re.MULTILINE))
    listed: set[int] = set()
    for first, last in re.findall(r"(\d{4})(?:–(\d{4}))?", cells):
        listed |= set(range(int(first), int(last or first) + 1))
    assert set(Mid) - listed == set()
