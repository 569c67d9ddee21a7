"""One attempt at a node of a kind, as tests of kinds make it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from edge.features.flows.nodes.kind import Act, Attempt, Compute, NodeKind, Output, Read

NOW = 100_000


def configure(kind: NodeKind[Any], config: Mapping[str, Any], *predecessors: str) -> list[str]:
    """Return the faults of a configuration; a violation of its JSON Schema is one."""
    try:
        return list(kind.faults(msgspec.convert(config, kind.config), predecessors))
    except msgspec.ValidationError as error:
        return [str(error)]


def attempt(inputs: Mapping[str, Any], number: int = 1, memory: Any = None) -> Attempt:
    """Return an attempt that starts at `NOW`."""
    return Attempt("flow", "node", number, NOW, inputs, memory)


def run(kind: NodeKind[Any], config: Mapping[str, Any], given: Any = None, **named: Any) -> Output:
    """Return the output of one attempt at a computing kind, with one input or with named ones."""
    assert isinstance(kind.work, Compute)
    return kind.work.run(msgspec.convert(config, kind.config), attempt(named or {"source": given}))


def request(kind: NodeKind[Any], config: Mapping[str, Any], given: Any = None) -> object:
    """Return what a kind asks for: the query of a reading one, the action of an acting one."""
    converted = msgspec.convert(config, kind.config)
    match kind.work:
        case Read(query=query):
            return query(converted, attempt({}))
        case Act(action=action):
            return action(converted, attempt({"source": given}))
        case Compute():
            raise AssertionError(f"{kind.name} computes")
