"""One error tree, sorted by what the caller must do next: retry, refuse, fix the settings, report a bug."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class EdgeError(Exception):
    """Anything microdcs-edge raises on purpose; `advice` tells a person what to do next."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class Unavailable(EdgeError):
    """Something we need is not there just now (store, broker, equipment): try again later."""


class Refused(EdgeError):
    """A message we cannot act on as it stands: answer its sender, set it aside, go on.

    `kind` is the `mdcserrorkind` of the answer: `unreadable`, `unknown_type`, `invalid_payload`, `recipe`, ...
    """

    def __init__(self, kind: str, message: str, advice: str = "") -> None:
        super().__init__(message, advice)
        self.kind = kind


class SettingsError(EdgeError):
    """The settings cannot work; `problems` names every fault found, so that one look mends them all."""

    def __init__(self, problems: Iterable[str], advice: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems), advice)


class Defect(EdgeError):
    """The program contradicts itself: report it."""


@contextmanager
def unwrap_group() -> Iterator[None]:
    """Bring out the error that ended a task: people are told by its message, not by the group around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        expected, unexpected = group.split(EdgeError)
        if expected is None or unexpected is not None:
            raise
        first: BaseException = expected
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from group
