"""Values in the encoding of their source; a bare MessagePack integer is neither a text nor a digit."""

import json
from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from edge.equipment.value_payload import ValueDecoder
from edge.model.payload import Encoding, UnreadablePayloadError
from edge.store.other_redis import decode_list

MAX_VALUE_OF_NET = bytes.fromhex("c70cff3b9ac9fc0000003afff4417f")


def test_bare_messagepack_integers_keep_their_value() -> None:
    """Those from 32 to 126 were texts or digits: 55 was 7, and 65 was `A`."""
    decoder = ValueDecoder("s", "auto")
    assert [decoder.decode("t", msgpack.packb(number)) for number in range(-40, 300)] == list(range(-40, 300))


@pytest.mark.parametrize("payload", [b"12", b"7.5", b"on", b'{"v": 1}'])
def test_one_character_is_what_longer_payloads_of_the_topic_are(payload: bytes) -> None:
    decoder = ValueDecoder("s", "auto")
    decoder.decode("t", payload)
    assert [decoder.decode("t", text) for text in (b"7", b"A")] == [7, "A"]
    # Another topic of the source has the same encoding until it shows its own.
    assert decoder.decode("other", b"7") == 7
    decoder.decode("other", msgpack.packb(300))
    assert (decoder.decode("other", b"7"), decoder.decode("t", b"7")) == (55, 7)


def test_source_of_both_kinds_is_not_evidence_for_another_topic() -> None:
    """A MessagePack 55 was read as 7, without a warning, because another topic had sent JSON last."""
    decoder = ValueDecoder("line", "auto")
    decoder.decode("packed", msgpack.packb(300))
    decoder.decode("json", b"81.5")
    with capture_logs() as logs:
        assert decoder.decode("fresh", msgpack.packb(55)) == 55
    assert [(entry["event"], entry["name"]) for entry in logs] == [("payload ambiguous", "fresh")]


def test_payload_read_as_those_of_other_topics_is_reported_once() -> None:
    decoder = ValueDecoder("line", "auto")
    decoder.decode("json", b"81.5")
    with capture_logs() as logs:
        assert [decoder.decode(topic, b"7") for topic in ("one", "two")] == [7, 7]
    assert [(entry["name"], "taken as text" in entry["reason"]) for entry in logs] == [("one", True)]


def test_ambiguous_payload_without_evidence_is_reported_once() -> None:
    decoder = ValueDecoder("oven", "auto")
    with capture_logs() as logs:
        assert [decoder.decode("t", b"7"), decoder.decode("t", b"8")] == [55, 56]
    assert [(entry["event"], entry["source"], entry["name"]) for entry in logs] == [("payload ambiguous", "oven", "t")]


def test_text_that_is_also_a_messagepack_number_is_read_as_its_topic() -> None:
    """On topics of texts a Cyrillic letter was -76, and `Ωabc` was 2841731683."""
    decoder = ValueDecoder("s", "auto")
    for topic, text in (("ru", "да"), ("el", "Ωmega")):
        assert decoder.decode(topic, text.encode()) == text
    assert [decoder.decode("ru", "д".encode()), decoder.decode("el", "Ωabc".encode())] == ["д", "Ωabc"]
    assert decoder.decode("packed", msgpack.packb([1])) == [1]
    assert decoder.decode("packed", "д".encode()) == -76


def test_last_microsecond_of_the_calendar_is_a_value() -> None:
    """`DateTime.MaxValue` of .NET in MessagePack raised ValueError, which ended the gateway by a Redis source."""
    assert ValueDecoder("s", "auto").decode("t", MAX_VALUE_OF_NET).year == 9999
    assert decode_list(MAX_VALUE_OF_NET).year == 9999


@pytest.mark.parametrize(
    ("encoding", "payload", "value"),
    [
        ("json", b"7", 7),
        ("json", b'"7"', "7"),
        ("msgpack", b"7", 55),
        ("msgpack", b"\xcf" + b"\xff" * 8, 2**64 - 1),
        ("text", b"7", "7"),
        ("text", "ä".encode(), "ä"),
        ("auto", b"", ""),
        ("auto", b"[1]", [1]),
    ],
)
def test_value_is_decoded_in_the_encoding_of_its_source(encoding: Encoding, payload: bytes, value: Any) -> None:
    assert ValueDecoder("s", encoding).decode("t", payload) == value


_OTHERS = [("json", b"on"), ("msgpack", b"12"), ("text", b"\xff"), ("auto", b"\xff\xfe")]


@pytest.mark.parametrize(("encoding", "payload"), _OTHERS)
def test_payload_in_another_encoding_is_refused(encoding: Encoding, payload: bytes) -> None:
    with pytest.raises(UnreadablePayloadError):
        ValueDecoder("s", encoding).decode("t", payload)


@given(st.sampled_from(["auto", "json", "msgpack", "text"]), st.binary(max_size=100))
def test_any_payload_is_decoded_or_refused(encoding: Encoding, payload: bytes) -> None:
    with suppress(UnreadablePayloadError):
        ValueDecoder("s", encoding).decode("t", payload)


@given(st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.booleans(), st.text(min_size=1)))
def test_packed_value_is_read_back_after_any_json_value(value: Any) -> None:
    decoder = ValueDecoder("s", "auto")
    decoder.decode("json", json.dumps({"v": 1}).encode())
    decoder.decode("t", msgpack.packb([1, 2]))
    assert decoder.decode("t", msgpack.packb(value)) == value
