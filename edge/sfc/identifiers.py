"""How a run names things: the key of an action of a step, and the id of a command, which says what it belongs to."""

from __future__ import annotations

import functools
import re
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]*")
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")


class CommandKey(Struct, frozen=True):
    """The parts of a command id: the attempt counts the starts of an action in a run; a reset counts for itself."""

    job_id: str
    run_id: str
    action: str
    attempt: int
    reset: bool = False

    @property
    def command_id(self) -> str:
        """The command id of these parts, as we write it."""
        return command_id(self.job_id, self.run_id, self.action, self.attempt, reset=self.reset)


def quote(text: str) -> str:
    """Escape everything but letters, digits and `_.~-`, as in a URL path segment."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        character if _PLAIN.fullmatch(character) else "".join(f"%{byte:02X}" for byte in _bytes(character))
        for character in text
    )


def unquote(text: str) -> str:
    """Undo `quote`."""
    if "%" not in text:
        return text
    raw = bytearray()
    at = 0
    for escape in _ESCAPE.finditer(text):
        raw += _bytes(text[at : escape.start()])
        raw.append(int(escape.group(1), 16))
        at = escape.end()
    raw += _bytes(text[at:])
    return raw.decode("utf-8", "surrogatepass" if _decodes(raw) else "replace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decodes(raw: bytearray) -> bool:
    try:
        raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def command_prefix(job_id: str, run_id: str) -> str:
    """Return the part that the ids of all commands of a run share."""
    return f"{quote(job_id)}/{quote(run_id)}/"


def command_id(job_id: str, run_id: str, action: str, attempt: int, *, reset: bool = False) -> str:
    """Write a command id: `job/run/action/attempt`, with `/reset` for a reset."""
    return f"{command_prefix(job_id, run_id)}{quote(action)}/{attempt}{'/reset' if reset else ''}"


def parse_command_id(text: str) -> CommandKey | None:
    """Parse a command id; None for a foreign id."""
    match text.split("/"):
        case [job_id, run_id, action, attempt, *rest] if rest in ([], ["reset"]) and _COUNT.fullmatch(attempt):
            return CommandKey(unquote(job_id), unquote(run_id), unquote(action), int(attempt), reset=bool(rest))
        case _:
            return None


_TEXT: Final = re.compile(r"(?P<action>[^@#/]*)@(?P<step>[^@#/]*)(?:#(?P<number>\d{1,9}))?(?:/(?P<attempt>\d{1,9}))?")


class AssociationKey(NamedTuple):
    """Identifies an association: of an action with a step, or an earlier attempt of it.

    `number` counts from 1 when an action stands in the same step more than once. `attempt` is 0 for the latest
    activation, else the attempt whose command was still open when the step became active again.
    """

    action: str
    step: str
    number: int = 1
    attempt: int = 0

    @property
    def is_left_behind(self) -> bool:
        """Return whether it is an earlier attempt, next to the latest activation."""
        return self.attempt != 0

    @property
    def latest(self) -> AssociationKey:
        """Return the key of the latest activation."""
        return self._replace(attempt=0) if self.attempt else self

    def left_behind(self, attempt: int) -> AssociationKey:
        """Return the key of an earlier attempt."""
        return self._replace(attempt=attempt)

    def __str__(self) -> str:
        return _text(self)


def parse_association_key(text: str) -> AssociationKey:
    """Parse `action@step`, `action@step#number` and `…/attempt`; raises ValueError for any other text."""
    return _parse(text)


# A run asks for the same few keys in every decision.
@lru_cache(maxsize=4096)
def _text(key: AssociationKey) -> str:
    number = f"#{key.number}" if key.number != 1 else ""
    attempt = f"/{key.attempt}" if key.attempt else ""
    return f"{quote(key.action)}@{quote(key.step)}{number}{attempt}"


@lru_cache(maxsize=4096)
def _parse(text: str) -> AssociationKey:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a key of an association")
    number, attempt = match["number"] or 1, match["attempt"] or 0
    return AssociationKey(unquote(match["action"]), unquote(match["step"]), int(number), int(attempt))
