"""Turns a flow document into a plan, or into the list of all its faults."""

import traceback
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.features.flows import graph
from edge.features.flows.nodes.kind import Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.registry import BUILT_IN, NodeKinds
from edge.features.flows.schedule import MEMBERS, InvalidScheduleError, Schedule, parse_schedule


class FaultKind(StrEnum):
    """The kinds of fault that keep a flow from being registered."""

    CYCLE = "cycle"
    UNKNOWN_NODE = "unknown_node"
    UNKNOWN_KIND = "unknown_kind"
    INVALID_CONFIG = "invalid_config"
    DUPLICATE_NODE = "duplicate_node"
    DUPLICATE_EDGE = "duplicate_edge"
    PORT_MISMATCH = "port_mismatch"
    EMPTY = "empty"
    INVALID_SCHEDULE = "invalid_schedule"


FLOW = "flow"
"""The `where` of a fault that belongs to the document itself."""
NODES = "nodes"
"""The `where` of a flow without nodes."""
SCHEDULE = "schedule"
"""The `where` of a fault of the schedule."""


class Fault(Struct, frozen=True):
    """One fault: a node id, `a->b` for an edge, a part of the document, or the nodes of a cycle; and a message."""

    kind: FaultKind
    where: str | tuple[str, ...]
    message: str


LONGEST_ID: Final = 200
LONGEST_TIMEOUT_S: Final = 86_400
_FLOW_MEMBERS: Final = {"id", "nodes", "edges", "time_zone", "catch_up", *MEMBERS}
_NODE_MEMBERS: Final = {"id", "kind", "config", "retries", "timeout_seconds"}


class PlannedNode(Struct, frozen=True):
    """A node that can run: its kind with the configuration, and the limits of its attempts."""

    id: str
    kind: NodeKind[Any]
    config: NodeConfig
    retries: int
    timeout_ms: int | None


class Plan(Struct, frozen=True):
    """A flow without faults: its nodes, how they depend on each other, and when its cycles are due.

    Components, entry nodes and layers are sorted by code point.
    """

    id: str
    schedule: Schedule
    catch_up: bool
    nodes: Mapping[str, PlannedNode]
    predecessors: Mapping[str, tuple[str, ...]]
    successors: Mapping[str, tuple[str, ...]]
    components: tuple[tuple[str, ...], ...]
    layers: tuple[tuple[str, ...], ...]

    @property
    def entry_nodes(self) -> tuple[str, ...]:
        """Return the nodes without predecessors."""
        return tuple(sorted(node for node, sources in self.predecessors.items() if not sources))


class Rejected(Struct, frozen=True):
    """A flow that cannot be registered, with all its faults."""

    faults: tuple[Fault, ...]


def plan_flow(document: object, kinds: NodeKinds = BUILT_IN) -> Plan | Rejected:
    """Plan a flow document, JSON as it was decoded; all faults are reported at once."""
    if not isinstance(document, Mapping):
        return Rejected((Fault(FaultKind.INVALID_CONFIG, FLOW, "a flow is a JSON object"),))
    draft = _Draft(document, kinds)
    if draft.faults:
        return Rejected(tuple(draft.faults))
    return draft.plan()


class _Draft:
    """A flow document while it is checked."""

    def __init__(self, document: Mapping[str, Any], kinds: NodeKinds) -> None:
        self.faults: list[Fault] = []
        self._document = document
        self._kinds = kinds
        self._schedule: Schedule | None = None
        self._nodes: dict[str, PlannedNode] = {}
        self._check_document()
        entries = self._read_nodes()
        edges = self._read_edges(entries)
        known = [(source, target) for source, target in edges if source in entries]
        self._successors = _by_source(entries, known)
        self._predecessors = graph.reverse(self._successors)
        sources = _by_target(entries, edges)
        for node_id, entry in entries.items():
            self._check_node(node_id, entry, sources[node_id])
        for nodes in graph.cycles(self._successors):
            message = f"the nodes {', '.join(nodes)} depend on each other; remove an edge between them"
            self._fault(FaultKind.CYCLE, nodes, message)

    def plan(self) -> Plan:
        """Return the plan of a document without faults."""
        if self._schedule is None:
            raise ValueError("a flow with faults has no plan")
        return Plan(
            id=self._document["id"],
            schedule=self._schedule,
            catch_up=self._document.get("catch_up", False),
            nodes=self._nodes,
            predecessors=self._predecessors,
            successors=self._successors,
            components=graph.components(self._successors),
            layers=graph.layers(self._successors),
        )

    def _fault(self, kind: FaultKind, where: str | tuple[str, ...], message: str) -> None:
        self.faults.append(Fault(kind, where, message))

    def _check_document(self) -> None:
        if not _is_id(self._document.get("id")):
            self._fault(FaultKind.INVALID_CONFIG, FLOW, f"id is a text of 1 to {LONGEST_ID} characters")
        for name in sorted(map(str, self._document.keys() - _FLOW_MEMBERS)):
            self._fault(FaultKind.INVALID_CONFIG, FLOW, f"unknown member {name!r}")
        try:
            self._schedule = parse_schedule(self._document)
        except InvalidScheduleError as error:
            self._fault(FaultKind.INVALID_SCHEDULE, SCHEDULE, str(error))

    def _read_nodes(self) -> dict[str, Mapping[str, Any]]:
        """Return the nodes by id, the first of each; report those without an id and those that come twice."""
        listed = self._document.get("nodes", [])
        if not isinstance(listed, (list, tuple)):
            self._fault(FaultKind.INVALID_CONFIG, NODES, "nodes is a list of objects")
            return {}
        if not listed:
            self._fault(FaultKind.EMPTY, NODES, "the flow has no nodes")
        found: dict[str, Mapping[str, Any]] = {}
        twice: set[str] = set()
        for index, entry in enumerate(listed):
            node_id = entry.get("id") if isinstance(entry, Mapping) else None
            if not isinstance(entry, Mapping) or not isinstance(node_id, str) or not _is_id(node_id):
                message = f"a node is an object with an id of 1 to {LONGEST_ID} characters"
                self._fault(FaultKind.INVALID_CONFIG, f"nodes[{index}]", message)
            elif node_id in found:
                twice.add(node_id)
            else:
                found[node_id] = entry
        for node_id in sorted(twice):
            self._fault(FaultKind.DUPLICATE_NODE, node_id, "several nodes have this id; each needs its own")
        return found

    def _read_edges(self, entries: Mapping[str, object]) -> list[tuple[str, str]]:
        """Return the distinct edges whose target is known; report malformed, unknown and repeated ones."""
        listed = self._document.get("edges", [])
        if not isinstance(listed, (list, tuple)):
            self._fault(FaultKind.INVALID_CONFIG, FLOW, 'edges is a list of pairs, like ["a", "b"]')
            return []
        seen: dict[tuple[str, str], int] = {}
        for index, pair in enumerate(listed):
            match pair:
                case [str() as source, str() as target]:
                    seen[source, target] = seen.get((source, target), 0) + 1
                case _:
                    message = 'an edge is a pair of node ids, like ["a", "b"]'
                    self._fault(FaultKind.INVALID_CONFIG, f"edges[{index}]", message)
        for (source, target), count in seen.items():
            where = f"{source}->{target}"
            unknown = [node for node in dict.fromkeys((source, target)) if node not in entries]
            if unknown:
                self._fault(
                    FaultKind.UNKNOWN_NODE, where, f"there is no node {' and no node '.join(map(repr, unknown))}"
                )
            if count > 1:
                self._fault(FaultKind.DUPLICATE_EDGE, where, f"the edge is listed {count} times; list it once")
        return [edge for edge in seen if edge[1] in entries]

    def _check_node(self, node_id: str, entry: Mapping[str, Any], sources: set[str]) -> None:
        problems = list(_member_problems(entry))
        kind_name = entry.get("kind")
        kind = self._kinds.get(kind_name) if isinstance(kind_name, str) else None
        config = None
        if kind is None:
            message = f"there is no node kind {kind_name!r}; 'edge flows kinds' lists them"
            self._fault(FaultKind.UNKNOWN_KIND, node_id, message)
        else:
            self._check_ports(node_id, kind, len(sources))
            config, found = _read_config(kind, entry.get("config", {}), sources)
            problems += found
        for problem in problems:
            self._fault(FaultKind.INVALID_CONFIG, node_id, problem)
        if kind is not None and config is not None and not problems:
            timeout = entry.get("timeout_seconds")
            timeout_ms = None if timeout is None else max(1, round(timeout * 1000))
            self._nodes[node_id] = PlannedNode(node_id, kind, config, entry.get("retries", 0), timeout_ms)

    def _check_ports(self, node_id: str, kind: NodeKind[Any], count: int) -> None:
        match kind.inputs:
            case Inputs.NONE if count:
                message = f"{kind.name} takes no input; remove the edges to it"
            case Inputs.ONE if count == 0:
                message = f"{kind.name} takes one input; add an edge to it"
            case Inputs.ONE if count > 1:
                message = f"{kind.name} takes one input, this node has {count}; a merge node joins them"
            case _:
                return
        self._fault(FaultKind.PORT_MISMATCH, node_id, message)


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= LONGEST_ID


def _read_config(kind: NodeKind[Any], document: object, sources: set[str]) -> tuple[NodeConfig | None, list[str]]:
    """Return the configuration of a node, None when it cannot be used, and what is wrong with it."""
    try:
        config: NodeConfig = msgspec.convert(document, kind.config)
        return config, [str(fault) for fault in kind.faults(config, sources)]
    except msgspec.ValidationError as error:
        return None, [f"config of {kind.name}: {error}"]
    except Exception as error:  # a defect in the code of a site is a fault of its flows, and ends no gateway
        if not kind.in_worker:
            raise
        return None, [f"the check of {kind.name} failed: {traceback.format_exception_only(error)[-1].strip()}"]


def _member_problems(entry: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(map(str, entry.keys() - _NODE_MEMBERS)):
        yield f"unknown member {name!r}"
    retries = entry.get("retries", 0)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        yield "retries is a whole number from 0"
    if "timeout_seconds" in entry:
        timeout = entry["timeout_seconds"]
        number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if not number or not 0 < timeout <= LONGEST_TIMEOUT_S:
            yield f"timeout_seconds is a number above 0, at most {LONGEST_TIMEOUT_S}"


def _by_source(nodes: Mapping[str, object], edges: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    targets: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        targets[source].append(target)
    return {node: tuple(found) for node, found in targets.items()}


def _by_target(nodes: Mapping[str, object], edges: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    sources: dict[str, set[str]] = {node: set() for node in nodes}
    for source, target in edges:
        sources[target].add(source)
    return sources


_MOST: Final = 1000


class Plans:
    """Plans documents with the node kinds of this process."""

    def __init__(self, kinds: NodeKinds = BUILT_IN) -> None:
        self._kinds = kinds
        self._cache: OrderedDict[str, Plan | Rejected] = OrderedDict()

    def of(self, document: str) -> Plan | Rejected:
        """Return the plan of a document, JSON text, or its faults."""
        found = self._cache.get(document)
        if found is None:
            found = self._cache[document] = plan_flow(msgspec.json.decode(document), self._kinds)
            if len(self._cache) > _MOST:
                self._cache.popitem(last=False)
        self._cache.move_to_end(document)
        return found
