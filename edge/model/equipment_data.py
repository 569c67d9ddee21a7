"""Data sent to equipment: of commands, and of answers to a device that requests work."""

from typing import Any

import msgspec


class CommandData(msgspec.Struct, frozen=True):
    """The data of a command; `parameters` are those of the action, replaced by those of the run."""

    job_id: str
    action: str
    attempt: int
    parameters: dict[str, Any]


class TaskData(msgspec.Struct, frozen=True):
    """The task of a device that requested work."""

    job_id: str
    action: str
    parameters: dict[str, Any]
