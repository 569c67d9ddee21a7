"""The methods of a joining system (OPC 40450-1, clause 7): all of them are optional, so who calls asks first."""

from typing import Any

from edge.errors import Refused
from edge.links.opcua import ClientSession, Node

_MANAGEMENTS = ("JoiningProcessManagement", "ResultManagement")


class IjtMethods:
    """What a controller can be asked for. Every call raises Refused when it declines, Unavailable when it is gone."""

    def __init__(self, session: ClientSession, owners: dict[str, Node]) -> None:
        self._session = session
        self._owners = owners

    def __contains__(self, name: object) -> bool:
        """Return whether the controller has a method."""
        return name in self._owners

    async def call(self, name: str, *arguments: Any, output_count: int | None = None) -> list[Any]:
        """Call a method that tells Status and StatusMessage; give what it tells before them, so many values."""
        match await self._session.call(self._owners[name], name, *arguments):
            case [*outputs, int(status), str() | None as message] if (
                output_count is None or len(outputs) == output_count
            ):
                if status:
                    raise Refused("device", f"{name}: {message or f'the controller says status {status}'}")
                return outputs
            case _:
                raise Refused("device", f"{name}: what the controller answers is not what OPC 40450-1 says")

    async def call_result_method(self, name: str, *arguments: Any, output_count: int | None = None) -> list[Any]:
        """Call a method of OPC 40001-101, which tells an Error; give what it tells before it, so many values."""
        match await self._session.call(self._owners[name], name, *arguments):
            case [*outputs, int(error)] if output_count is None or len(outputs) == output_count:
                if error:
                    raise Refused("device", f"{name}: the controller says error {error}")
                return outputs
            case _:
                raise Refused("device", f"{name}: what the controller answers is not what OPC 40001-101 says")


async def find_methods(session: ClientSession, system: Node) -> IjtMethods:
    """Browse which methods a joining system has."""
    parts = await session.children(system)
    blocks = await session.children(parts["MachineryBuildingBlocks"]) if "MachineryBuildingBlocks" in parts else {}
    assets = await session.children(parts["AssetManagement"]) if "AssetManagement" in parts else {}
    places = [each for name in _MANAGEMENTS if (each := parts.get(name) or blocks.get(name))]
    if "MethodSet" in assets:
        places.append(assets["MethodSet"])
    return IjtMethods(session, {name: place for place in places for name in await session.children(place)})
