"""What equipment is told: the data of commands, and of answers to a device that asks for work."""

from typing import Any

import msgspec


class CommandData(msgspec.Struct, frozen=True):
    """The data of a command; the action's parameters stand over those of the job order."""

    job_id: str
    action: str
    attempt: int
    parameters: dict[str, Any]


class TaskData(msgspec.Struct, frozen=True):
    """What a device that asked for work is to do."""

    job_id: str
    action: str
    parameters: dict[str, Any]
