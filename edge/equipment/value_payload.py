"""Decodes the values of a source: in one encoding, or in the one that each payload shows."""

from typing import Any, Final

import msgspec
import structlog

from edge.foundation.rate_limit import LogThrottle
from edge.model.payload import Encoding, UnreadablePayloadError, decode_msgpack, decode_payload

logger = structlog.get_logger(__name__)

MAX_TOPICS: Final = 10_000
_FAULTS: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class ValueDecoder:
    """Decodes payloads: `auto` is MessagePack, else JSON, else UTF-8 text.

    Some payloads are both: one printable character may be an integer from 32 to 126, and few Greek or Cyrillic letters
    a number of more bytes. Such a payload is what others of its topic were, else those of the source while these were
    all of one kind, else MessagePack.
    """

    def __init__(self, source: str, encoding: Encoding) -> None:
        self._source = source
        self._encoding = encoding
        self._is_text: dict[str, bool] = {}
        """Whether the unambiguous payloads of a topic are JSON or text, not MessagePack."""
        self._source_kinds: set[bool] = set()
        """Likewise for all topics: of both kinds, they say nothing about another topic."""
        self._faults = LogThrottle(logger)

    def decode(self, topic: str, payload: bytes) -> Any:
        """Return the content of a payload. Raises UnreadablePayloadError."""
        if self._encoding != "auto":
            return decode_payload(payload, self._encoding)
        try:
            return self._decode_any(topic, payload)
        except _FAULTS:
            raise UnreadablePayloadError from None

    def _decode_any(self, topic: str, payload: bytes) -> Any:
        try:
            content = decode_msgpack(payload)
        except _FAULTS:
            self._note(topic, is_text=True)
            return _text(payload)
        if _is_printable(payload):
            return _text(payload) if self._expects_text(topic) else content
        if len(payload) > 1:
            self._note(topic, is_text=False)
        return content

    def _expects_text(self, topic: str) -> bool:
        is_text = self._is_text.get(topic)
        if is_text is None:
            is_text = self._source_kinds == {True}
            advice = f'Set [source.{self._source}] encoding = "json", "text" or "msgpack".'
            reason = f"it may be text or MessagePack: taken as {'text' if is_text else 'MessagePack'}"
            subject = self._source if len(self._source_kinds) == 1 else topic
            self._faults.warning(
                "payload ambiguous", subject, source=self._source, name=topic, reason=reason, advice=advice
            )
        return is_text

    def _note(self, topic: str, *, is_text: bool) -> None:
        self._source_kinds.add(is_text)
        if topic in self._is_text or len(self._is_text) < MAX_TOPICS:
            self._is_text[topic] = is_text


def _is_printable(payload: bytes) -> bool:
    """Return whether a payload is UTF-8 text without control characters."""
    try:
        return payload.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _text(payload: bytes) -> Any:
    """Return JSON, else UTF-8 text."""
    try:
        return msgspec.json.decode(payload)
    except _FAULTS:
        return payload.decode()
