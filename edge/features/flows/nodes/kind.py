"""What a node kind is: its configuration, its ports, and the work of one attempt."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from edge.features.flows.nodes.outside import Action, Query
from edge.foundation.text import Text, as_text


class Inputs(Enum):
    """How many predecessors a node of a kind has; a join runs with those that passed their output on."""

    NONE = "none"
    ONE = "one"
    ANY = "any"
    JOIN = "join"


class Withheld(Enum):
    """Why a completed node does not pass its output on; dependents are skipped with this reason."""

    SWITCH = "switch"
    UNCHANGED = "unchanged"


class NodeError(Exception):
    """An attempt that failed; the message becomes the reason of the node task."""

    def __init__(self, message: str | Text) -> None:
        super().__init__(str(message))
        self.text = as_text(message)


class NodeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of a node; unknown members are faults."""


class Attempt(Struct, frozen=True):
    """The context of one attempt at a node.

    `inputs` holds the outputs of its predecessors by node id. `number` counts from 1. `now` is its start, in
    milliseconds since the epoch. `memory` is what the last attempt of this node remembered, None before the first.
    """

    flow_id: str
    node_id: str
    number: int
    now: int
    inputs: Mapping[str, Any]
    memory: Any = None

    @property
    def input(self) -> Any:
        """Return the output of the only predecessor; None when there are none or several."""
        return next(iter(self.inputs.values())) if len(self.inputs) == 1 else None


class Output(Struct, frozen=True):
    """The result of an attempt: a JSON value, passed on after a delay unless it is withheld; and what to remember."""

    value: Any = None
    withheld: Withheld | None = None
    delay_ms: int = 0
    memory: Any = None


ConfigT = TypeVar("ConfigT", bound=NodeConfig)


class Compute(Struct, Generic[ConfigT], frozen=True):
    """Work that needs its inputs only. Raises NodeError."""

    run: Callable[[ConfigT, Attempt], Output]


class Read(Struct, Generic[ConfigT], frozen=True):
    """Work that reads from the plant: the query that is asked; its answer is the output. Raises NodeError."""

    query: Callable[[ConfigT, Attempt], Query]


class Act(Struct, Generic[ConfigT], frozen=True):
    """Work that changes something outside: the action that is performed. Raises NodeError."""

    action: Callable[[ConfigT, Attempt], Action]


Work: TypeAlias = Compute[ConfigT] | Read[ConfigT] | Act[ConfigT]


def no_faults(_config: NodeConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    """Report no faults: the JSON Schema validates the whole configuration."""
    return ()


class NodeKind(Struct, Generic[ConfigT], frozen=True):
    """A kind of node.

    `faults` reports what the JSON Schema of `config` cannot: it gets the configuration and the ids of the predecessors.
    A node of a `repeatable` kind runs again after an interruption; any other fails with `interrupted`. A kind with
    `in_worker` runs in worker processes, never in a gateway; its work is a computation.
    """

    name: str
    summary: str
    config: type[ConfigT]
    inputs: Inputs
    work: Work[ConfigT]
    repeatable: bool = True
    faults: Callable[[ConfigT, Iterable[str]], Iterable[str]] = no_faults
    in_worker: bool = False
