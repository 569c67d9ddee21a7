"""Flow documents as tests write them."""

from typing import Any

from edge.features.flows.plan import Plan, plan_flow


def node(node_id: str, kind: str, **config: Any) -> dict[str, Any]:
    """Return a node without limits of its own."""
    return {"id": node_id, "kind": kind, "config": config}


def flow(nodes: list[dict[str, Any]], edges: str = "", **members: Any) -> dict[str, Any]:
    """Return a flow document; edges are written as `a>b b>c`."""
    pairs = [edge.split(">") for edge in edges.split()]
    schedule = {} if {"cron", "shifts", "interval_seconds"} & members.keys() else {"interval_seconds": 60}
    return {"id": "flow", "nodes": nodes, "edges": pairs, **schedule, **members}


def plan_of(document: dict[str, Any]) -> Plan:
    """Return the plan of a document without faults."""
    plan = plan_flow(document)
    assert isinstance(plan, Plan), plan
    return plan


def nodes_of(cycle: dict[str, Any]) -> dict[str, Any]:
    """Return the nodes of a cycle in its public form by their names."""
    return {node["node"]: node for node in cycle["nodes"]}
