"""`alarm.raise`: raises an alarm."""

from typing import Annotated

import msgspec

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import RaiseAlarm


class AlarmRaiseConfig(NodeConfig, frozen=True):
    """The rule that the alarm names, its severity (1-1000, OPC 10000-5) and its message, with `{value}` for the input.

    The default message is that of a rule without a message.
    """

    alarm: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    severity: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    message: str = ""


def _action(config: AlarmRaiseConfig, attempt: Attempt) -> RaiseAlarm:
    return RaiseAlarm(attempt.flow_id, config.alarm, config.severity, config.message, attempt.input)


KIND = NodeKind("alarm.raise", "Raises an alarm.", AlarmRaiseConfig, Inputs.ONE, Act(_action), repeatable=False)
