"""Methods of a joining system (OPC 40450-1, clause 7): all are optional, so callers check whether a method exists."""

import asyncio
from typing import Any, Final

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, Node

STEP_SECONDS: Final = 10.0
"""The seconds within which a controller must answer one step of a stop: one without an answer delays the others."""
_MANAGEMENTS = ("JoiningProcessManagement", "JointManagement", "ResultManagement")


class IjtMethods:
    """The methods of a controller. A call raises Refused when declined, Unavailable when the connection is lost."""

    def __init__(self, session: ClientSession, owners: dict[str, Node]) -> None:
        self._session = session
        self._owners = owners

    def owner(self, name: str) -> Node | None:
        """Return the object that has a method or an object of this name; None where the controller has none."""
        return self._owners.get(name)

    def __contains__(self, name: object) -> bool:
        """Return whether the controller has a method."""
        return name in self._owners

    async def call(self, name: str, *arguments: Any, output_count: int | None = None) -> list[Any]:
        """Call a method that returns Status and StatusMessage as its last outputs; return the outputs before them.

        Raises Refused when Status is not 0, or when the number of these outputs is not `output_count`.
        """
        match await self._session.call(self._owners[name], name, *arguments):
            case [*outputs, int(status), str() | None as message] if (
                output_count is None or len(outputs) == output_count
            ):
                if status:
                    raise Refused(
                        "device",
                        Text.of(
                            "{name}: {message}", name=name, message=message or f"the controller says status {status}"
                        ),
                    )
                return outputs
            case _:
                raise Refused(
                    "device", Text.of("{name}: what the controller answers is not what OPC 40450-1 says", name=name)
                )

    async def call_step(self, name: str, *arguments: Any) -> None:
        """Call a method of a stop; raises Refused also when it is not answered within `STEP_SECONDS`."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                await self.call(name, *arguments)
        except TimeoutError:
            raise Refused(
                "device", Text.of("{name}: no answer within {step_seconds:g} s", name=name, step_seconds=STEP_SECONDS)
            ) from None

    async def call_result_method(self, name: str, *arguments: Any, output_count: int | None = None) -> list[Any]:
        """Call a method of OPC 40001-101, which returns an Error as its last output; return the outputs before it.

        Raises Refused when Error is not 0, or when the number of these outputs is not `output_count`.
        """
        match await self._session.call(self._owners[name], name, *arguments):
            case [*outputs, int(error)] if output_count is None or len(outputs) == output_count:
                if error:
                    raise Refused(
                        "device", Text.of("{name}: the controller says error {reason}", name=name, reason=error)
                    )
                return outputs
            case _:
                raise Refused(
                    "device", Text.of("{name}: what the controller answers is not what OPC 40001-101 says", name=name)
                )


async def find_methods(session: ClientSession, system: Node) -> IjtMethods:
    """Browse a joining system and return its methods."""
    parts = await session.children(system)
    blocks = await session.children(parts["MachineryBuildingBlocks"]) if "MachineryBuildingBlocks" in parts else {}
    assets = await session.children(parts["AssetManagement"]) if "AssetManagement" in parts else {}
    places = [found for name in _MANAGEMENTS if (found := parts.get(name) or blocks.get(name))]
    if "MethodSet" in assets:
        places.append(assets["MethodSet"])
    return IjtMethods(session, {name: place for place in places for name in await session.children(place)})
