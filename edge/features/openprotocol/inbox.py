"""Results that a controller needs to have confirmed before they are answered: kept in the memory of their equipment."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from edge.features.openprotocol.protocol.frame import MidFrame
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text

_NAME = "unsettled_results"
_MOST = 300
"""The most results that are kept, three times those of the largest batch."""

Remember: TypeAlias = Callable[[Mapping[str, str]], Awaitable[None]]


class KeptFrame(Struct, frozen=True, array_like=True):
    """A message with a result; its data are encoded as Latin-1."""

    mid: int
    revision: int
    station: int
    spindle: int
    data: str

    @property
    def key(self) -> str:
        """Return what identifies the message: equal for an equal one."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]


class ResultInbox:
    """Keeps results from their receipt until they are settled.

    With the link layer, and before curves, a controller sends nothing further until a result is confirmed. A result in
    the inbox survives the connection and a restart: it may be confirmed at once. Each gateway at a controller writes an
    inbox of its own, and takes over those of the others when it connects after them.
    """

    def __init__(self, recall: Callable[[], Awaitable[Mapping[str, str]]], remember: Remember, gateway: str) -> None:
        self._field = f"{_NAME}:{gateway}"
        self._recall = recall
        self._remember = remember
        self._frames: dict[str, KeptFrame] | None = None
        self._stored = ""
        # One result may be kept while another is removed: each writes the list of all.
        self._writing = asyncio.Lock()

    async def take_over(self) -> None:
        """Read the results again, and move those of other gateways here; raises Unavailable without the store."""
        async with self._writing:
            texts = await self._recall()
            inboxes = {name: text for name, text in texts.items() if name.startswith(f"{_NAME}:") and text}
            self._frames = {frame.key: frame for text in inboxes.values() for frame in _decoded(text)}
            self._stored = inboxes.pop(self._field, "")
            if inboxes:
                text = _encoded(self._frames)
                await self._remember({self._field: text} | dict.fromkeys(inboxes, ""))
                self._stored = text

    async def unsettled(self) -> Sequence[MidFrame]:
        """Return the results that are not settled, the oldest first; raises Unavailable without the store."""
        async with self._writing:
            frames = await self._load()
        return [
            MidFrame(
                frame.mid, frame.data.encode("latin-1"), frame.revision, station=frame.station, spindle=frame.spindle
            )
            for frame in frames.values()
        ]

    async def keep(self, message: MidFrame) -> str:
        """Keep a result; return its key when it is durable. Raises Unavailable without the store or room."""
        data = message.data.decode("latin-1")
        frame = KeptFrame(message.mid, message.revision, message.station, message.spindle, data)
        async with self._writing:
            frames = await self._load() | {frame.key: frame}
            if len(frames) > _MOST:
                raise Unavailable(Text.of("{most} results are not settled yet", most=_MOST))
            await self._write(frames)
            self._frames = frames
        return frame.key

    async def remove(self, *keys: str) -> None:
        """Remove results that are settled; raises Unavailable without the store, which the next write corrects."""
        async with self._writing:
            frames = await self._load()
            self._frames = {key: frame for key, frame in frames.items() if key not in keys}
            await self._write(self._frames)

    async def _load(self) -> dict[str, KeptFrame]:
        """Return the results by their keys; the first call reads those of an earlier process."""
        if self._frames is None:
            self._stored = (await self._recall()).get(self._field, "")
            self._frames = {frame.key: frame for frame in _decoded(self._stored)}
        return self._frames

    async def _write(self, frames: Mapping[str, KeptFrame]) -> None:
        text = _encoded(frames) if frames or self._stored else ""
        if text != self._stored:
            await self._remember({self._field: text})
            self._stored = text


def _encoded(frames: Mapping[str, KeptFrame]) -> str:
    return msgspec.json.encode(list(frames.values())).decode()


def _decoded(text: str) -> list[KeptFrame]:
    """Return the results of a text; none of one that is damaged or of a later release."""
    try:
        return msgspec.json.decode(text, type=list[KeptFrame]) if text else []
    except msgspec.DecodeError:
        return []
