"""One error tree, sorted by what the caller must do next: retry, refuse, fix the settings, report a bug."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from edge.foundation.text import Text, as_text, join_texts


class EdgeError(Exception):
    """Base of all expected errors; `advice` is the next action for a person.

    `message` and `advice` are English; `text` and `advice_text` can be stated in each language that has a catalogue.
    """

    def __init__(self, message: str | Text, advice: str | Text = "") -> None:
        self.text = as_text(message)
        self.advice_text = as_text(advice)
        self.message = str(self.text)
        self.advice = str(self.advice_text)
        super().__init__(self.message)

    @property
    def sentences(self) -> str:
        """Return the message and the advice as sentences of one line."""
        return str(self.sentences_text)

    @property
    def sentences_text(self) -> Text:
        """Return the message and the advice as sentences, for each language."""
        texts = (text for text in (self.text, self.advice_text) if text.id)
        return join_texts(" ", (text if str(text).endswith(".") else Text.of("{text}.", text=text) for text in texts))


class Unavailable(EdgeError):
    """A dependency is unavailable now (store, broker, equipment): retry later."""


class LocalFault(Unavailable):
    """A process or a file of this computer cannot be used now, while the store answers."""


class Refused(EdgeError):
    """A message cannot be processed as it is: answer its sender, store it as refused, continue.

    `kind` is the `mdcserrorkind` of the answer: `unreadable`, `unknown_type`, `invalid_payload`, `recipe`, ...
    """

    def __init__(self, kind: str, message: str | Text, advice: str | Text = "") -> None:
        super().__init__(message, advice)
        self.kind = kind


class SettingsError(EdgeError):
    """The settings are invalid; `problem_texts` lists every fault, so that all can be fixed at once.

    `problems` has them in English.
    """

    def __init__(self, problems: Iterable[str | Text], advice: str | Text = "") -> None:
        self.problem_texts = tuple(map(as_text, problems))
        self.problems = tuple(map(str, self.problem_texts))
        super().__init__(join_texts("\n", self.problem_texts), advice)


class Defect(EdgeError):
    """The program contradicts itself: report the defect."""


class RenewalError(EdgeError):
    """A lease cannot be renewed: end the work, as another process may do it, too."""


@contextmanager
def unwrap_group() -> Iterator[None]:
    """Unwrap the expected error from the exception group of a task group, so that its message is reported."""
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
