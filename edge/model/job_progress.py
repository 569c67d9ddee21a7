"""The progress of a running recipe: the steps that changed and the commands that were sent."""

import msgspec


class StepProgress(msgspec.Struct, frozen=True):
    """A step that was entered or left."""

    step: str
    active: bool


class CommandProgress(msgspec.Struct, frozen=True):
    """A command to equipment."""

    action: str
    phase: str
    attempt: int
    type_id: str


class JobProgress(msgspec.Struct, frozen=True):
    """The effect of decisions about a job, at an instant in milliseconds since the epoch."""

    job_id: str
    at: int
    steps: tuple[StepProgress, ...]
    commands: tuple[CommandProgress, ...]
