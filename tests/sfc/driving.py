"""Advances a run signal by signal, for tests that look at what each does."""

from typing import Any

from edge.sfc.advance import advance
from edge.sfc.net import Net
from edge.sfc.run import Run, new_run
from edge.sfc.signal import (
    NO_MIRRORS,
    Advanced,
    Answer,
    CommandRequest,
    Ignored,
    IgnoredKind,
    Mirrors,
    Signal,
    Start,
    StepChange,
)


class Driven:
    """A run with its net; keeps the requests and step changes of the last signal."""

    def __init__(self, net: Net, parameters: dict[str, Any] | None = None, *, start: bool = True) -> None:
        self.net = net
        self.run: Run = new_run("J1", "station-1", "R1", parameters or {})
        self.requests: tuple[CommandRequest, ...] = ()
        self.steps: tuple[StepChange, ...] = ()
        if start:
            self.signal(Start(), 0)

    def signal(self, signal: Signal, now: int, mirrors: Mirrors = NO_MIRRORS) -> None:
        advanced = advance(self.net, self.run, signal, now, mirrors)
        assert isinstance(advanced, Advanced), advanced
        self.run, self.requests, self.steps = advanced.run, advanced.requests, advanced.steps

    def answer(self, action: str, now: int, data: Any = None, attempt: int = 1, error: str | None = None) -> None:
        self.signal(Answer(f"J1/R1/{action}/{attempt}", ok=error is None, data=data, error=error), now)

    def ignored(self, signal: Signal, now: int) -> IgnoredKind:
        """Return a signal that must change nothing, and why it does not."""
        ignored = advance(self.net, self.run, signal, now)
        assert isinstance(ignored, Ignored), ignored
        assert ignored.reason
        return ignored.kind

    @property
    def sent(self) -> list[str]:
        """The last requests as `phase command_id`."""
        return [f"{request.phase} {request.command_id}" for request in self.requests]
