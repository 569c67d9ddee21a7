"""The identifiers of a simulated tightening controller: those of the next result, as clients send them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from asyncua import ua

from edge.features.simulator.ijt_processes import status
from edge.features.simulator.opcua_device import Method, OpcuaDevice

_KEYS = ("Name", "EntityId", "EntityOriginId")
"""The members by which a client names an identifier; a text identifier has no Name."""


class SentIdentifiers:
    """`entities` are those of the next result (EntityDataType); `listed` encodes them, `on_read` is called first."""

    def __init__(
        self,
        device: OpcuaDevice,
        listed: Callable[[str, Sequence[Mapping[str, Any]]], Awaitable[ua.Variant]],
        on_read: Callable[[], Awaitable[None]],
    ) -> None:
        self.entities: list[dict[str, Any]] = []
        self._device = device
        self._listed = listed
        self._on_read = on_read

    def methods(self) -> Mapping[str, Method]:
        """Return the methods of MethodSet that send, read and reset identifiers."""
        return {
            "SendIdentifiers": self._send,
            "SendTextIdentifiers": self._send_texts,
            "GetIdentifiers": self._get,
            "ResetIdentifiers": self._reset,
        }

    async def _send(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, entities = await self._device.plain(arguments)
        self.entities += entities or ()
        return status()

    async def _send_texts(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, texts = await self._device.plain(arguments)
        self.entities += [{"EntityId": text, "IsExternal": True, "EntityType": 0} for text in texts or ()]
        return status()

    async def _get(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, names = await self._device.plain(arguments)
        await self._on_read()
        entities = [entity for entity in self.entities if not names or _is_named(entity, names)]
        return [await self._listed("EntityDataType", entities), *status()]

    async def _reset(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, names, everything, latest = await self._device.plain(arguments)
        if names:
            self.entities = [entity for entity in self.entities if not _is_named(entity, names)]
        elif everything or latest:
            self.entities = [] if everything else self.entities[:-1]
        return status()


def _is_named(entity: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(entity.get(key) in names for key in _KEYS)
