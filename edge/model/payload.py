"""Decodes what other systems send without a content type: JSON, MessagePack or text."""

from typing import Any

import msgspec


class UnreadablePayloadError(ValueError):
    """A payload that is neither JSON nor MessagePack nor text."""

    def __init__(self) -> None:
        super().__init__("it is neither JSON nor MessagePack nor UTF-8 text")


def decode_payload(payload: bytes) -> Any:
    """Return the content of a payload: JSON, else MessagePack, else UTF-8 text; raises UnreadablePayloadError.

    A single printable character is no MessagePack, although it could be the number of that character. Longer payloads
    are never both: JSON begins with a character that is a complete MessagePack number.
    """
    is_character = len(payload) == 1 and payload.isascii() and payload.decode().isprintable()
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    if not is_character:
        try:
            return msgspec.msgpack.decode(payload)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise UnreadablePayloadError from None
