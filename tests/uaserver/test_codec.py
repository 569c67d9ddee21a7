"""Numbers, texts and paths as single fields; whole structures are tried in test_encoding.py."""

import pytest
from asyncua.common.utils import Buffer

from edge.model.isa95 import BrowseName, LocalizedText
from edge.uaserver.codec import BROWSE_PATH, INT16, INT32, LOCALIZED_TEXT, LOCALIZED_TEXTS, STRING, DecodeError


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (INT16, -3),
        (INT32, 20053),
        (STRING, "Drehmoment ±"),
        (LOCALIZED_TEXT, LocalizedText(text="Achse", locale="de")),
        (LOCALIZED_TEXT, LocalizedText()),
        (LOCALIZED_TEXTS, (LocalizedText(text="axle"), LocalizedText(locale="en"))),
        (LOCALIZED_TEXTS, ()),
        (BROWSE_PATH, (BrowseName(name="x"), BrowseName(name="y", namespace_uri="http://opcfoundation.org/UA/DI/"))),
    ],
    ids=["Int16", "Int32", "String", "text", "no text", "texts", "no texts", "path"],
)
def test_what_is_written_is_read(codec: object, value: object) -> None:
    assert codec.read(Buffer(codec.pack(value)), 0) == value  # type: ignore[attr-defined]


def test_the_null_text_and_the_null_array_are_empty() -> None:
    null = b"\xff\xff\xff\xff"
    assert STRING.read(Buffer(null), 0) == ""
    assert LOCALIZED_TEXTS.read(Buffer(null), 0) == ()


def test_a_path_through_a_namespace_without_states_is_unreadable() -> None:
    path = BROWSE_PATH.pack((BrowseName(name="x"),))
    with pytest.raises(DecodeError, match="namespace 77"):
        BROWSE_PATH.read(Buffer(path.replace(b"\0\1\0\0", b"\0\1\x4d\0")), 0)
