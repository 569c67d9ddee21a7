"""Methods of a joining system (OPC 40450-1, clause 7): all are optional, so callers check whether a method exists."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import structlog

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
                            "{name}: {message}",
                            name=name,
                            message=message or Text.of("the controller says status {status}", status=status),
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
    places = [node for name in _MANAGEMENTS if (node := parts.get(name) or blocks.get(name))]
    if "MethodSet" in assets:
        places.append(assets["MethodSet"])
    return IjtMethods(session, {name: place for place in places for name in await session.children(place)})


# Time for which the server must keep a result handle; it is released at once.
_HANDLE_MS = 1000
_LISTING = ("GetResultIdListFiltered", "GetResultById")
_NO_LIMIT = 0

_log = structlog.get_logger(__name__)


async def latest_result(methods: IjtMethods) -> Any:
    """Return the data of the latest result; None when there is none. Raises Refused(`too_large`)."""
    if "GetLatestResult" not in methods:
        return None
    try:
        handle, data = await methods.call_result_method("GetLatestResult", _HANDLE_MS, output_count=2)
        await _release(methods, handle)
    except Refused as refusal:
        if refusal.kind == "too_large":
            raise
        # The controller has no result yet.
        return None
    return data


async def listed_ids(methods: IjtMethods) -> list[str]:
    """Return the ids of all results that the controller lists, which may be partial; the likely newest first."""
    if not all(name in methods for name in _LISTING):
        return []
    try:
        arguments = (None, None, _NO_LIMIT, _HANDLE_MS)
        handle, ids = await methods.call_result_method("GetResultIdListFiltered", *arguments, output_count=2)
        await _release(methods, handle)
    except Refused as refusal:
        _log.info("results not listed", reason=refusal.message)
        return []
    return from_both_ends(ids or ())


async def read_result(methods: IjtMethods, result_id: str) -> Any:
    """Return the data of a listed result; raises Refused, `too_large` when it exceeds the size limit of a message."""
    handle, data = await methods.call_result_method("GetResultById", result_id, _HANDLE_MS, output_count=2)
    await _release(methods, handle)
    return data


def from_both_ends(ids: Sequence[str]) -> list[str]:
    """Return the last id, the first, the one before the last, and so on: the newest result is at either end."""
    return [result_id for pair in zip(reversed(ids), ids, strict=True) for result_id in pair][: len(ids)]


async def _release(methods: IjtMethods, handle: Any) -> None:
    if handle and "ReleaseResultHandle" in methods:
        await methods.call_result_method("ReleaseResultHandle", handle)
