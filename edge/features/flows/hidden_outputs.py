"""Which nodes of a cycle have outputs that a reader may not see: values of tags that the reader's role may not read.

Those are the nodes that name such a tag, what is written to it, and all that follows from them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from edge.features.flows.cycle import NodeStatus, NodeTask

MayRead: TypeAlias = Callable[[str], bool]
"""Whether a reader may see the values of a tag."""
NOTHING_HIDDEN: Final[frozenset[str]] = frozenset()


def may_read_all(_tag: str) -> bool:
    """Return that a reader sees every tag: a person at a terminal, and the MES."""
    return True


def hidden_nodes(document: str, may_read: MayRead) -> frozenset[str]:
    """Return the nodes of a flow, JSON text, whose outputs a reader may not see.

    The document counts, not its plan: the node kinds of a site may not be installed here. Any text of a configuration
    may be the name of a tag.
    """
    flow = msgspec.json.decode(document) if document else {}
    naming = {
        node["id"]
        for node in flow.get("nodes", ())
        if any(not may_read(text) for text in _texts(node.get("config", {})))
    }
    edges = [(source, target) for source, target in flow.get("edges", ())]
    # The value that is written to a tag is the output of the node before.
    hidden = naming | {source for source, target in edges if target in naming}
    while more := {target for source, target in edges if source in hidden} - hidden:
        hidden |= more
    return frozenset(hidden)


def without_output(task: NodeTask) -> NodeTask:
    """Return a task as a reader sees it who may not see its output: the reason of a failure may have values, too."""
    reason = None if task.status is NodeStatus.FAILED else task.reason
    return replace(task, output=None, reason=reason, memory=None)


def shown_tasks(tasks: Mapping[str, NodeTask], hidden: frozenset[str]) -> dict[str, NodeTask]:
    """Return the tasks of a cycle without the outputs that a reader may not see."""
    return {node: without_output(task) if node in hidden else task for node, task in tasks.items()}


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case _:
            return
