"""Decodes the values of a source: in one encoding, or in the one that each payload shows."""

from typing import Any, Final

import msgspec
import structlog

from edge.links.log_throttle import LogThrottle
from edge.model.payload import Encoding, UnreadablePayloadError, decode_payload

logger = structlog.get_logger(__name__)

MAX_TOPICS: Final = 10_000
_FAULTS: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class ValueDecoder:
    """Decodes payloads: `auto` is MessagePack, else JSON, else UTF-8 text.

    One printable character alone may be a MessagePack integer from 32 to 126 or a text. It is what the longer payloads
    of its topic were, else those of the source while these were all of one kind, else MessagePack.
    """

    def __init__(self, source: str, encoding: Encoding) -> None:
        self._source = source
        self._encoding = encoding
        self._is_text: dict[str, bool] = {}
        """Whether the longer payloads of a topic are JSON or text, not MessagePack."""
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
        if len(payload) == 1 and 0x20 <= payload[0] < 0x7F:  # noqa: PLR2004 - the printable characters of ASCII
            return _text(payload) if self._expects_text(topic) else payload[0]
        try:
            content = msgspec.msgpack.decode(payload)
        except _FAULTS:
            self._note(topic, is_text=True)
            return _text(payload)
        if len(payload) > 1:
            self._note(topic, is_text=False)
        return content

    def _expects_text(self, topic: str) -> bool:
        is_text = self._is_text.get(topic)
        if is_text is None:
            is_text = self._source_kinds == {True}
            advice = f'Set [source.{self._source}] encoding = "json", "text" or "msgpack".'
            reason = f"one character may be text or a MessagePack integer: taken as {'text' if is_text else 'integer'}"
            subject = self._source if len(self._source_kinds) == 1 else topic
            self._faults.warning(
                "payload ambiguous", subject, source=self._source, name=topic, reason=reason, advice=advice
            )
        return is_text

    def _note(self, topic: str, *, is_text: bool) -> None:
        self._source_kinds.add(is_text)
        if topic in self._is_text or len(self._is_text) < MAX_TOPICS:
            self._is_text[topic] = is_text


def _text(payload: bytes) -> Any:
    """Return JSON, else UTF-8 text."""
    try:
        return msgspec.json.decode(payload)
    except _FAULTS:
        return payload.decode()
