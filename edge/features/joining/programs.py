"""Joining processes, joints and counters of a tightening controller: what a command names, checked before its start."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from edge.equipment.identifiers import identifier
from edge.features.joining.conversion import process
from edge.features.joining.methods import IjtMethods
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.station.equipment import Command

_LARGEST = 2**32 - 1
_LISTED = 20
"""The most names in the reason of a refusal."""

_COUNTERS: Mapping[str, str] = MappingProxyType(
    {
        "batch_size": "SetJoiningProcessSize",
        "counter": "SetJoiningProcessCounter",
        "increment_counter": "IncrementJoiningProcessCounter",
        "decrement_counter": "DecrementJoiningProcessCounter",
    }
)
_RESET = "ResetJoiningProcess"
_IDS = ("JoiningProcessId", "JoiningProcessOriginId")
_NAMES = ("JoiningProcessId", "JoiningProcessOriginId", "Name")
_JOINT_NAMES = ("JointId", "JointOriginId", "Name")


def counter_calls(command: Command) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the methods that set the counters which a command names, with their arguments; a reset comes first.

    Raises Refused when a number is out of its range.
    """
    if command.parameters.get("reset_process") is True:
        yield _RESET, ()
    for parameter, method in _COUNTERS.items():
        value = command.parameters.get(parameter)
        if value is None or value == "":
            continue
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise Refused(
                "parameters",
                Text.of(
                    "the parameter {parameter} has to be a whole number from 0, not {value}",
                    parameter=parameter,
                    value=repr(value),
                ),
            )
        yield method, (value,)


def selected_joint(command: Command) -> tuple[str, str] | None:
    """Return the ids of the joint by which a command selects its process; None when it does not.

    Raises Refused when it names no joint, or also a process.
    """
    if command.parameters.get("select") != "joint":
        return None
    joint, origin = (identifier(command, name) for name in ("joint_id", "joint_origin_id"))
    if not joint and not origin:
        raise Refused("parameters", "the parameter joint_id is missing: it has to name the joint to select")
    if process(command):
        raise Refused("parameters", "a command selects either a joint or a joining process")
    return joint, origin


class JoiningPrograms:
    """The joining processes and joints of a controller on one connection; empty where it cannot list them."""

    def __init__(self, methods: IjtMethods, uri: str) -> None:
        self._methods = methods
        self._uri = uri
        self._processes: Sequence[Mapping[str, Any]] = ()
        self._joints: Sequence[Mapping[str, Any]] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the processes, and of the joints, as people know them."""
        listed = [_shown(entry, _NAMES) for entry in self._processes]
        return tuple(listed + [f"joint {_shown(joint, _JOINT_NAMES)}" for joint in self._joints])

    @property
    def listed_names(self) -> frozenset[str]:
        """The ids and the names of the listed processes."""
        return frozenset(str(entry[field]) for entry in self._processes for field in _NAMES if entry.get(field))

    def names_of(self, ids: Collection[str]) -> frozenset[str]:
        """Return what a controller may call the process with these ids: the ids, and those of its entry in the list."""
        entries = [{str(entry[field]) for field in _NAMES if entry.get(field)} for entry in self._processes]
        return frozenset(ids).union(*(names for names in entries if names & set(ids)))

    async def read(self) -> None:
        """Read both lists, where the controller has them; a refusal leaves a list empty."""
        self._processes = await self._list("GetJoiningProcessList")
        self._joints = await self._list("GetJointList")

    async def check(self, command: Command) -> None:
        """Raise Refused when the controller lists neither the process nor the joint that a command names."""
        # A SelectionName, such as the number at a socket tray, is not in the list.
        wanted = {value for name, value in process(command).items() if name in _IDS}
        joint = {text for text in selected_joint(command) or () if text}
        if self._has(wanted, joint):
            return
        # The list may have changed since the connection was opened.
        await self.read()
        if not self._has(wanted, joint):
            what = (
                Text.of("joint {name}", name=_joined(joint))
                if joint
                else Text.of("joining process {name}", name=_joined(wanted))
            )
            entries, fields = (self._joints, _JOINT_NAMES) if joint else (self._processes, _NAMES)
            known = [_shown(entry, fields) for entry in entries[:_LISTED]]
            raise Refused(
                "device", Text.of("the controller has no {what}; it has {joined}", what=what, joined=_joined(known))
            )

    def _has(self, wanted: set[str], joint: set[str]) -> bool:
        return _lists(self._processes, _NAMES, wanted) and _lists(self._joints, _JOINT_NAMES, joint)

    async def _list(self, method: str) -> Sequence[Mapping[str, Any]]:
        if method not in self._methods:
            return ()
        try:
            (found,) = await self._methods.call(method, self._uri, output_count=1)
        except Refused:
            return ()
        return [value for value in found or () if isinstance(value, Mapping)]


def _lists(entries: Sequence[Mapping[str, Any]], fields: Sequence[str], wanted: set[str]) -> bool:
    """Return whether one entry has all wanted names; a controller without a list is not asked for any."""
    return not wanted or not entries or any(wanted <= {entry.get(field) for field in fields} for entry in entries)


def _shown(entry: Mapping[str, Any], fields: Sequence[str]) -> str:
    return str(next((entry[field] for field in fields if entry.get(field)), ""))


def _joined(names: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(names))
