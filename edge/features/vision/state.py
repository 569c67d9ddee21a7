"""The states of a vision system (OPC 40100-1), identified by number, independent of the language of their names."""

from collections.abc import Mapping
from enum import IntEnum
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


_NULL_IDS = (None, "", "i=0")


class VisionState(IntEnum):
    """The StateNumber of each state of VisionStateMachine and of its AutomaticModeStateMachine."""

    UNKNOWN = 0
    PREOPERATIONAL = 1
    HALTED = 2
    ERROR = 3
    OPERATIONAL = 4
    INITIALIZED = 5
    READY = 6
    SINGLE_EXECUTION = 7
    CONTINUOUS_EXECUTION = 8

    @property
    def title(self) -> str:
        """The name as OPC 40100-1 writes it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


IDLE = frozenset({VisionState.ERROR, VisionState.HALTED})
"""The states in which a camera accepts no job."""
_NAMES = {state.name.replace("_", "").lower(): state for state in VisionState}


class StateReader:
    """Converter from the watched values of a state machine to its state.

    `variables` holds the node to watch of each machine: the Id of CurrentState if the camera fills it, else its Number,
    else its text, which must be in English.
    """

    def __init__(self, session: ClientSession, variables: Mapping[str, Node]) -> None:
        self.variables = variables
        self._session = session
        self._known: dict[str, VisionState] = {}

    async def state(self, value: Any) -> VisionState:
        """Return the state of a value of a watched variable."""
        match value:
            case int():
                return _state_of(value)
            case str() if (state := _NAMES.get(value.replace(" ", "").lower())) is not None:
                return state
            case str() if value not in _NULL_IDS:
                if value not in self._known:
                    self._known[value] = await self._state_of_node(value)
                return self._known[value]
            case _:
                return VisionState.UNKNOWN

    async def _state_of_node(self, node_id: str) -> VisionState:
        try:
            parts = await self._session.children(Node(node_id, f"state {node_id}"))
            return _state_of(await self._session.read(parts["StateNumber"])) if "StateNumber" in parts else _UNKNOWN
        except Refused:
            return _UNKNOWN


_UNKNOWN = VisionState.UNKNOWN


async def find_states(session: ClientSession, machines: Mapping[str, Node]) -> StateReader:
    """Return a reader of the state machines of a camera, which are passed by name."""
    current: dict[str, Node] = {}
    below: dict[str, Mapping[str, Node]] = {}
    for name, machine in machines.items():
        parts = await session.children(machine)
        if "CurrentState" not in parts:
            raise Refused("unknown_node", Text.of("the camera has no CurrentState of {name}", name=name))
        current[name] = parts["CurrentState"]
        below[name] = await session.children(parts["CurrentState"])
    first = next(iter(machines))
    for detail, nulls in (("Id", _NULL_IDS), ("Number", (None, 0))):
        offered = all(detail in entry for entry in below.values())
        if offered and await session.read(below[first][detail]) not in nulls:
            return StateReader(session, {name: entry[detail] for name, entry in below.items()})
    return StateReader(session, current)


def _state_of(number: Any) -> VisionState:
    return VisionState(number) if number in set(VisionState) else _UNKNOWN
