"""Decodes what other systems send without a content type: JSON, MessagePack or text."""

import re
from typing import Any, Literal, TypeAlias, assert_never

import msgspec

Encoding: TypeAlias = Literal["auto", "json", "msgpack", "text"]

# A timestamp of 96 bits within the last second of the year 9999: its nanoseconds, then its seconds.
_LAST_SECOND = re.compile(rb"(\xc7\x0c\xff).{4}(\x00\x00\x00\x3a\xff\xf4\x41\x7f)", re.DOTALL)
_LAST_MICROSECOND = (999_999_000).to_bytes(4)


class UnreadablePayloadError(ValueError):
    """A payload that is not in its encoding, or in none with `auto`."""

    def __init__(self, encoding: Encoding = "auto") -> None:
        name = {"json": "JSON", "msgpack": "MessagePack", "text": "UTF-8 text"}.get(encoding)
        super().__init__(f"it is not {name}" if name else "it is neither JSON nor MessagePack nor UTF-8 text")


def decode_msgpack(payload: bytes) -> Any:
    """Return the content of MessagePack; raises msgspec.DecodeError.

    msgspec rounds a timestamp to microseconds and raises ValueError for `DateTime.MaxValue` of .NET, which has seven
    digits: these timestamps lose the last one.
    """
    try:
        return msgspec.msgpack.decode(payload)
    except msgspec.DecodeError:
        raise
    except ValueError as error:
        cut, count = _LAST_SECOND.subn(rb"\1" + _LAST_MICROSECOND + rb"\2", payload)
        if not count:
            raise msgspec.DecodeError(str(error)) from None
        return _decode_again(cut)


def _decode_again(payload: bytes) -> Any:
    try:
        return msgspec.msgpack.decode(payload)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None


def decode_payload(payload: bytes, encoding: Encoding = "auto") -> Any:
    """Return the content of a payload in an encoding; `auto` is JSON, else MessagePack, else UTF-8 text.

    With `auto` a single printable character is not MessagePack, although it could be the number of that character.
    Longer payloads are never both: JSON begins with a character that is a complete MessagePack number. Raises
    UnreadablePayloadError.
    """
    try:
        match encoding:
            case "json":
                return msgspec.json.decode(payload)
            case "msgpack":
                return decode_msgpack(payload)
            case "text":
                return payload.decode()
            case "auto":
                return _decode_any(payload)
            case _:
                assert_never(encoding)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UnreadablePayloadError(encoding) from None


def _decode_any(payload: bytes) -> Any:
    is_character = len(payload) == 1 and payload.isascii() and payload.decode().isprintable()
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    if not is_character:
        try:
            return decode_msgpack(payload)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
    return payload.decode()
