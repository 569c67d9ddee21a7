"""The parameters of a tightening, for people who write recipes (docs/reference/equipment.md)."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from edge.equipment.action_types import ActionParameter, ActionTypes, ParameterValue, command_types, values_of
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.foundation.text import Text

_PROGRAM: Final = re.compile(r"(parameter set|job) (\d+)(?: \((.*)\))?", re.DOTALL)
"""An entry of the list of programs: `parameter set 3 (front axle)`."""


def action_types(section: OpenProtocolSettings, programs: Sequence[str]) -> ActionTypes:
    """Return its commands with their parameters and its events; parameter sets and jobs are those that it lists."""
    parameters = (
        ActionParameter(
            "parameter_set", Text.of("parameter set, from 1 to 999"), tuple(_listed("parameter set", programs))
        ),
        ActionParameter(
            "job",
            Text.of("job of the controller, from 1 to 9999, in place of a parameter set"),
            tuple(_listed("job", programs)),
        ),
        ActionParameter("batch_size", Text.of("tightenings of the parameter set, from 1 to 99")),
        ActionParameter(
            "classification", Text.of("batch: the whole batch is one action"), values_of(["single", "batch"])
        ),
        ActionParameter("vin", Text.of("identifier of the part, up to 17 characters")),
    )
    return command_types(section, parameters, section.events.values())


def _listed(kind: str, programs: Sequence[str]) -> Iterator[ParameterValue]:
    for program in programs:
        match = _PROGRAM.fullmatch(program)
        if match is not None and match[1] == kind:
            yield ParameterValue(int(match[2]), match[3] or "")
