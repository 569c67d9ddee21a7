"""`alarm.raise`: raises an alarm."""

from typing import Annotated

import msgspec

from edge.flows.nodes.act import RaiseAlarm
from edge.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind


class AlarmRaiseConfig(NodeConfig, frozen=True):
    """The id of the alarm, its severity (1-1000, OPC 10000-5) and its message."""

    alarm: str
    severity: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    message: str = ""


def _action(config: AlarmRaiseConfig, attempt: Attempt) -> RaiseAlarm:
    return RaiseAlarm(config.alarm, config.severity, config.message, attempt.input)


KIND = NodeKind("alarm.raise", "Raises an alarm.", AlarmRaiseConfig, Inputs.ONE, Act(_action), repeatable=False)
