"""An address space of which one namespace is computed: its nodes exist only while they are read."""

from collections.abc import Callable, Iterator, MutableMapping

from asyncua import ua
from asyncua.server.address_space import AddressSpace, NodeData


def compute_namespace(aspace: AddressSpace, namespace: int, node: Callable[[ua.NodeId], NodeData]) -> None:
    """Read the nodes of a namespace from `node`, which raises KeyError for an unknown one; the others as before."""
    aspace._nodes = _ComputedNodes(aspace._nodes, namespace, node)  # noqa: SLF001 - as asyncua's own loaders do


class _ComputedNodes(MutableMapping[ua.NodeId, NodeData]):
    """All nodes of an address space. Iteration yields those that are not computed."""

    def __init__(
        self, others: MutableMapping[ua.NodeId, NodeData], namespace: int, node: Callable[[ua.NodeId], NodeData]
    ) -> None:
        self._others = others
        self._namespace = namespace
        self._node = node

    def __getitem__(self, key: ua.NodeId) -> NodeData:
        return self._node(key) if key.NamespaceIndex == self._namespace else self._others[key]

    def __setitem__(self, key: ua.NodeId, value: NodeData) -> None:
        self._others[key] = value

    def __delitem__(self, key: ua.NodeId) -> None:
        del self._others[key]

    def __iter__(self) -> Iterator[ua.NodeId]:
        return iter(self._others)

    def __len__(self) -> int:
        return len(self._others)
