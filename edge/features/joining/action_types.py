"""The parameters of a joining, for people who write recipes (docs/reference/equipment.md)."""

from collections.abc import Sequence
from typing import Final

from edge.equipment.action_types import ActionParameter, ActionTypes, command_types, values_of
from edge.features.joining.settings import IjtSettings
from edge.foundation.text import Text

_JOINT: Final = "joint "
"""What a joint begins with in the list of programs; a joining process has no mark."""
_FROM_0: Final = Text.of("whole number from 0, set before the start")


def action_types(section: IjtSettings, programs: Sequence[str]) -> ActionTypes:
    """Return its commands with their parameters and its events; processes and joints are those that it lists."""
    joints = [program.removeprefix(_JOINT) for program in programs if program.startswith(_JOINT)]
    processes = [program for program in programs if not program.startswith(_JOINT)]
    parameters = (
        ActionParameter("joining_process_id", Text.of("joining process"), values_of(processes)),
        ActionParameter("joining_process_origin_id", Text.of("joining process by its original id")),
        ActionParameter("selection_name", Text.of("joining process by a selection name, such as a socket")),
        ActionParameter("vin", Text.of("identifier of the vehicle")),
        ActionParameter("product_id", Text.of("identifier of the product")),
        ActionParameter("part_id", Text.of("identifier of the part")),
        ActionParameter("joint_id", Text.of("identifier of the joint"), values_of(joints)),
        ActionParameter("joint_origin_id", Text.of("joint by its original id")),
        ActionParameter("identifiers", Text.of("further identifiers by name"), values_of([{"Cell": "7"}])),
        ActionParameter(
            "classification",
            Text.of("kind of result to wait for"),
            values_of(["single", "sync", "batch", "job", "stitching"]),
        ),
        ActionParameter("select", Text.of("the joint selects its process"), values_of(["joint"])),
        ActionParameter("batch_size", _FROM_0),
        ActionParameter("counter", _FROM_0),
        ActionParameter("increment_counter", _FROM_0),
        ActionParameter("decrement_counter", _FROM_0),
        ActionParameter("reset_process", Text.of("the counter of the process starts again"), values_of([True])),
        ActionParameter("start", Text.of("false: the operator starts it"), values_of([False])),
    )
    return command_types(section, parameters, section.events.values())
