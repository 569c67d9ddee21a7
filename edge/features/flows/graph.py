"""Pure functions on a directed graph of node ids: components, layers, and the sets of nodes that form cycles."""

from collections.abc import Iterable, Mapping, Sequence

Successors = Mapping[str, Sequence[str]]
"""Every node with the nodes that its edges lead to."""


def reverse(successors: Successors) -> dict[str, tuple[str, ...]]:
    """Return every node with the nodes whose edges lead to it, in the order of the graph."""
    found: dict[str, list[str]] = {node: [] for node in successors}
    for source, targets in successors.items():
        for target in targets:
            found[target].append(source)
    return {node: tuple(sources) for node, sources in found.items()}


def components(successors: Successors) -> tuple[tuple[str, ...], ...]:
    """Return the connected parts of the graph: nodes sorted within a part, parts sorted by their first node."""
    predecessors = reverse(successors)
    parts: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for start in sorted(successors):
        if start in seen:
            continue
        part = _reach(start, successors, predecessors)
        seen |= part
        parts.append(tuple(sorted(part)))
    return tuple(parts)


def _reach(start: str, *ways: Successors) -> set[str]:
    """Return every node that can be reached from one along any of these edges."""
    reached = {start}
    open_nodes = [start]
    while open_nodes:
        node = open_nodes.pop()
        for way in ways:
            new = [text for text in way[node] if text not in reached]
            reached.update(new)
            open_nodes += new
    return reached


def layers(successors: Successors) -> tuple[tuple[str, ...], ...]:
    """Return the nodes of an acyclic graph by the length of the longest path to them, sorted within a layer."""
    missing = {node: len(sources) for node, sources in reverse(successors).items()}
    current = sorted(node for node, count in missing.items() if count == 0)
    found: list[tuple[str, ...]] = []
    while current:
        found.append(tuple(current))
        following: list[str] = []
        for node in current:
            for target in successors[node]:
                missing[target] -= 1
                if missing[target] == 0:
                    following.append(target)
        current = sorted(following)
    return tuple(found)


def cycles(successors: Successors) -> tuple[tuple[str, ...], ...]:
    """Return each strongly connected set of nodes that holds a cycle, sorted; () for an acyclic graph.

    A node with an edge to itself is such a set. The method is Kosaraju's: depth-first order, then the reverse graph.
    """
    predecessors = reverse(successors)
    assigned: set[str] = set()
    found: list[tuple[str, ...]] = []
    for root in reversed(_finish_order(successors)):
        if root in assigned:
            continue
        group = _reach_within(root, predecessors, assigned)
        assigned |= group
        if len(group) > 1 or root in successors[root]:
            found.append(tuple(sorted(group)))
    return tuple(sorted(found))


def _reach_within(start: str, way: Successors, excluded: Iterable[str]) -> set[str]:
    reached = {start}
    open_nodes = [start]
    while open_nodes:
        new = [text for text in way[open_nodes.pop()] if text not in reached and text not in excluded]
        reached.update(new)
        open_nodes += new
    return reached


def _finish_order(successors: Successors) -> list[str]:
    """Return the nodes in the order in which a depth-first walk leaves them; without recursion, graphs may be deep."""
    order: list[str] = []
    seen: set[str] = set()
    for start in successors:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(successors[start]))]
        while path:
            node, targets = path[-1]
            following = next((target for target in targets if target not in seen), None)
            if following is None:
                order.append(node)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(successors[following])))
    return order
