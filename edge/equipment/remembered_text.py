"""One text that equipment remembers beyond its connection and a restart."""

from collections.abc import Mapping
from typing import Protocol

import structlog

from edge.foundation.errors import Unavailable

_log = structlog.get_logger(__name__)


def memory_of(name: str, place: str) -> str:
    """Return the name of the memory of equipment at a place: gateways of a store may call two devices the same."""
    return f"{name}@{place}"


class Memory(Protocol):
    """The texts of equipment in the store, as of a `StationPort`; its calls raise Unavailable."""

    async def recall(self, equipment: str) -> Mapping[str, str]:
        """Return the texts of equipment by their names."""

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        """Remember these texts; the others stay."""


class RememberedText:
    """The text `field` of the memory `name`: written when it changes; without the store, with its next change."""

    def __init__(self, memory: Memory, name: str, field: str) -> None:
        self._memory = memory
        self._name = name
        self._field = field
        self._written = ""

    async def recall(self) -> str:
        """Return the text, empty when none was written; raises Unavailable without the store."""
        self._written = (await self._memory.recall(self._name)).get(self._field, "")
        return self._written

    async def write(self, text: str) -> None:
        """Write the text if it has changed."""
        if text == self._written:
            return
        try:
            await self._memory.remember(self._name, {self._field: text})
            self._written = text
        except Unavailable as error:
            _log.info("text of equipment not written", equipment=self._name, field=self._field, reason=error.message)
