"""Browses the address space of a server, which may be very large and contain cycles."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from asyncua import Client, Node, ua

from edge.foundation.errors import Refused
from edge.foundation.text import Text

MOST_NODES = 20_000
"""The most nodes that one search reads, or that are kept below one node."""
_NODES_AT_ONCE = 20
# The references of so many nodes fit into one message.
_REFERENCES_AT_ONCE = 500
_MOST_BASES = 100
# The maximum length of a name (OPC 10000-3, 8.3).
_LONGEST_NAME = 512


async def references(
    node: Node, kind: int, direction: ua.BrowseDirection = ua.BrowseDirection.Forward
) -> list[ua.ReferenceDescription]:
    """Return the references of a kind of a node. Raises Refused(`unknown_node`) above the limit of nodes."""
    results = await node.session.browse(_parameters([_question(node.nodeid, kind, direction)]))
    return await _whole(node.session, results[0]) if results else []


class Browser:
    """Browses a server; the types that it reads are cached."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bases: dict[ua.NodeId, tuple[ua.NodeId, ...]] = {}

    async def below(self, node: ua.NodeId) -> list[ua.ReferenceDescription]:
        """Return the nodes below a node. Raises Refused(`unknown_node`) above the limit of nodes."""
        return await references(self._client.get_node(node), ua.ObjectIds.HierarchicalReferences)

    async def objects_below(
        self, nodes: Sequence[ua.NodeId]
    ) -> AsyncIterator[tuple[ua.NodeId, ua.ReferenceDescription]]:
        """Yield the objects below each of many nodes, each with its parent; raises as `below`."""
        for first in range(0, len(nodes), _NODES_AT_ONCE):
            asked = nodes[first : first + _NODES_AT_ONCE]
            for node, found in zip(asked, await self._objects_below(asked), strict=True):
                for value in found:
                    yield node, value

    async def bases(self, type_id: ua.NodeId) -> tuple[ua.NodeId, ...]:
        """Return a type and its base types, itself first; in a cycle each once."""
        type_id = ua.NodeId(type_id.Identifier, type_id.NamespaceIndex)
        if type_id not in self._bases:
            chain = {type_id: None}
            base = await self._base(type_id)
            while base and base not in chain and len(chain) < _MOST_BASES:
                known = self._bases.get(base)
                chain |= dict.fromkeys(known or (base,))
                base = None if known else await self._base(base)
            if len(self._bases) >= MOST_NODES:
                self._bases.clear()
            self._bases[type_id] = tuple(chain)
        return self._bases[type_id]

    async def _base(self, type_id: ua.NodeId) -> ua.NodeId | None:
        node = self._client.get_node(type_id)
        found = await references(node, ua.ObjectIds.HasSubtype, ua.BrowseDirection.Inverse)
        return found[0].NodeId if found else None

    async def _objects_below(self, nodes: Sequence[ua.NodeId]) -> list[list[ua.ReferenceDescription]]:
        """Browse several nodes in one request; when the server declines it, one after the other."""
        session = self._client.uaclient.session
        kind, downwards = ua.ObjectIds.HierarchicalReferences, ua.BrowseDirection.Forward
        questions = [_question(node, kind, downwards, ua.NodeClass.Object) for node in nodes]
        try:
            results = await session.browse(_parameters(questions))
        except ua.uaerrors.BadTooManyOperations:
            results = []
        if len(nodes) > 1 and (len(results) != len(nodes) or any(map(_had_no_room, results))):
            return [(await self._objects_below((node,)))[0] for node in nodes]
        return [await _whole(session, result) for result in results] or [[]]


def _question(
    node_id: ua.NodeId, kind: int, direction: ua.BrowseDirection, classes: ua.NodeClass = ua.NodeClass.Unspecified
) -> ua.BrowseDescription:
    return ua.BrowseDescription(
        NodeId=node_id,
        BrowseDirection=direction,
        ReferenceTypeId=ua.NodeId(kind),
        IncludeSubtypes=True,
        NodeClassMask=classes,
        ResultMask=ua.BrowseResultMask.All,
    )


def _parameters(questions: list[ua.BrowseDescription]) -> ua.BrowseParameters:
    parameters = ua.BrowseParameters(RequestedMaxReferencesPerNode=_REFERENCES_AT_ONCE, NodesToBrowse=questions)
    parameters.View.Timestamp = ua.get_win_epoch()
    return parameters


def _had_no_room(result: ua.BrowseResult) -> bool:
    return bool(result.StatusCode.value == ua.StatusCodes.BadNoContinuationPoints)


async def _whole(session: Any, result: ua.BrowseResult) -> list[ua.ReferenceDescription]:
    """Return all references of a node, also when the server returns them in pages."""
    found = list(result.References or ())
    while result.ContinuationPoint and len(found) <= MOST_NODES:
        more = ua.BrowseNextParameters(ReleaseContinuationPoints=False, ContinuationPoints=[result.ContinuationPoint])
        results = await session.browse_next(more)
        if not results or not results[0].References:
            break
        (result,) = results
        found += result.References
    if len(found) > MOST_NODES:
        raise Refused(
            "unknown_node", Text.of("a node has more than {most_nodes} others below it", most_nodes=MOST_NODES)
        )
    return [item for item in found if len(item.BrowseName.Name or "") <= _LONGEST_NAME]
