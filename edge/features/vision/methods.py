"""Calls of the methods of a vision system (OPC 40100-1)."""

from collections.abc import Mapping
from typing import Any

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, Node


async def call_method(session: ClientSession, owner: Node, name: str, *arguments: Any) -> list[Any]:
    """Call a method that returns an Error; return the outputs before it. Raises Refused for an Error that is not 0."""
    match await session.call(owner, name, *arguments):
        case [*outputs, int(error)]:
            if error:
                raise Refused("device", Text.of("{name}: the camera says error {reason}", name=name, reason=error))
            return outputs
        case _:
            raise Refused("device", Text.of("{name}: what the camera answers is not what OPC 40100-1 says", name=name))


def find_part(nodes: Mapping[str, Node], name: str) -> Node:
    """Return a part of the camera by its name. Raises Refused(`unknown_node`) when there is none."""
    if name not in nodes:
        raise Refused("unknown_node", Text.of("the camera has no {name}", name=name))
    return nodes[name]
