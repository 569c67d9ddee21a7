r"""Finds how far an append-only file of Redis or Valkey is whole, and what follows.

The file has commands of RESP, `*1\r\n$4\r\nPING\r\n`. A power cut leaves at its end what the file system had allocated
and not written: a part of a command, zeros, or both. fsync never confirmed these bytes, so nothing acknowledged is lost
with them. Other bytes after the last whole command are a damage that the file does not explain.
"""

from enum import Enum

from msgspec import Struct

_LINE_END = b"\r\n"
_MOST_HEAD = 32
"""The longest first line of a command or of an argument, in bytes."""


class Rest(Enum):
    """What follows the last whole command of a file."""

    NONE = "nothing"
    TORN = "a torn command, an open transaction or zeros"
    DAMAGE = "bytes that are not a command"


class Survey(Struct, frozen=True):
    """The number of bytes up to the last whole command outside of a transaction, and what follows them."""

    whole: int
    rest: Rest


class _TornError(Exception):
    """The content ends within a command."""


class _DamageError(Exception):
    """The content is not a command."""


def survey(content: bytes) -> Survey:
    r"""Return how far a file is whole.

    survey(b"*1\r\n$4\r\nPING\r\n" + bytes(512)) == Survey(14, Rest.TORN)
    """
    position, whole, is_open = 0, 0, False
    while position < len(content):
        try:
            position, name = _command(content, position)
        except (_TornError, _DamageError):
            return Survey(whole, Rest.TORN if _is_torn(content[position:]) else Rest.DAMAGE)
        is_open = name == b"MULTI" or (is_open and name != b"EXEC")
        if not is_open:
            whole = position
    return Survey(whole, Rest.TORN if is_open else Rest.NONE)


def _is_torn(rest: bytes) -> bool:
    """Return whether the bytes are the beginning of one command, or none, with zeros behind it."""
    begun = rest.rstrip(b"\0")
    if not begun:
        return True
    try:
        _command(begun, 0)
    except _TornError:
        return True
    except _DamageError:
        return False
    # A whole command that is followed by zeros was read before.
    return False


def _command(content: bytes, position: int) -> tuple[int, bytes]:
    """Return the end of the command at a position, and its name in capitals; "" for an annotation."""
    if content[position : position + 1] == b"#":
        end = content.find(_LINE_END, position)
        if end < 0:
            raise _TornError
        return end + len(_LINE_END), b""
    position, count = _number(content, position, b"*")
    name = b""
    for number in range(count):
        position, length = _number(content, position, b"$")
        end = position + length
        if number == 0:
            name = content[position:end].upper()
        ending = content[end : end + len(_LINE_END)]
        if not _LINE_END.startswith(ending):
            raise _DamageError
        if len(ending) < len(_LINE_END):
            raise _TornError
        position = end + len(_LINE_END)
    return position, name


def _number(content: bytes, position: int, mark: bytes) -> tuple[int, int]:
    """Return the end of a line such as `*3` or `$12`, and its number."""
    line = content[position : position + _MOST_HEAD]
    if not line:
        raise _TornError
    digits, found, _ = line.partition(_LINE_END)
    is_number = digits[:1] == mark and digits[1:].rstrip(b"\r").isdigit()
    if found and is_number and not digits.endswith(b"\r"):
        return position + len(digits) + len(_LINE_END), int(digits[1:])
    # Without its end the line is torn where the content ends, and no line anywhere else.
    if not found and len(line) < _MOST_HEAD and (is_number or line == mark):
        raise _TornError
    raise _DamageError
