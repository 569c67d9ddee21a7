"""The id of a command, which is enough to route its answer."""

from __future__ import annotations

import functools
import re
from typing import Final

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
