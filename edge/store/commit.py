"""Builds a guarded transaction and runs it in one round trip."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from edge.store.connection import CommandConnection, ReplyError, error_of_reply

CommitArgument = str | int
RedisCommand = tuple[CommitArgument, ...]
"""One Redis command of a transaction, its name first."""

MOST_ARGUMENTS: Final = 4000
"""Arguments of one command: Lua unpacks fewer than 8,000 values. Even, as fields and values come in pairs."""

_TRANSACTION_SIZE = 29
"""Bytes of MULTI and EXEC, which enclose what a script writes."""
_HEAD_SIZE = 5
_ARGUMENT_SIZE = 6
"""Bytes of the length before a command and before each argument, and of the ends of line."""


class Revision(Struct, frozen=True, array_like=True, tag="revision"):
    """The field `rev` of the hash at `key` must still be `text`; `0`: the hash does not exist yet.

    It is a text because numbers of Lua lose digits from 2 to the power of 53 on.
    """

    key: str
    text: str


def at_revision(key: str, revision: int) -> Revision:
    """Return the guard that the hash at `key` is still at a revision; 0: it does not exist yet."""
    return Revision(key, str(revision))


class Absent(Struct, frozen=True, array_like=True, tag="absent"):
    """Nothing may be stored at `key`."""

    key: str


class Fewer(Struct, frozen=True, array_like=True, tag="fewer"):
    """The sorted set at `key` holds `member` already, or fewer than `limit` members."""

    key: str
    member: str
    limit: int


class Holds(Struct, frozen=True, array_like=True, tag="holds"):
    """The string at `key` must still be `text`."""

    key: str
    text: str


class HashField(Struct, frozen=True, array_like=True, tag="field"):
    """The field of the hash at `key` must still be `text`; None: it must be absent."""

    key: str
    name: str
    text: str | None


Guard = Revision | Absent | Fewer | Holds | HashField


class Commit(Struct, frozen=True, array_like=True):
    """What one decision writes: under these guards all of it, else nothing."""

    guards: tuple[Guard, ...] = ()
    operations: tuple[RedisCommand, ...] = ()


NOTHING = Commit()
"""Writes nothing."""


class Committed(Struct, frozen=True):
    """Everything was written."""


class Stale(Struct, frozen=True):
    """Nothing was written: another process changed `key`. Load and decide again."""

    key: str


CommitResult = Committed | Stale


def join(parts: Iterable[Commit]) -> Commit:
    """Return one commit of several, in their order."""
    guards: list[Guard] = []
    operations: list[RedisCommand] = []
    for part in parts:
        guards += part.guards
        operations += part.operations
    return Commit(tuple(guards), tuple(operations))


def operation(command: str, *arguments: CommitArgument) -> Commit:
    """Return a commit of a single Redis command."""
    return Commit(operations=((command, *arguments),))


def spread(command: str, fixed: Sequence[CommitArgument], many: Iterable[CommitArgument]) -> Commit:
    """Return a commit of a command with `fixed` and any number of further arguments, split where they are many."""
    listed = tuple(many)
    if len(listed) <= MOST_ARGUMENTS:
        return operation(command, *fixed, *listed) if listed else NOTHING
    chunks = (listed[start : start + MOST_ARGUMENTS] for start in range(0, len(listed), MOST_ARGUMENTS))
    return Commit(operations=tuple((command, *fixed, *chunk) for chunk in chunks))


def fields(mapping: Mapping[str, str]) -> Iterator[str]:
    """Return the fields of a hash or entry as Redis takes them: each name followed by its value."""
    return chain.from_iterable(mapping.items())


def written_size(commit: Commit) -> int:
    """Return about how many bytes of the append-only file a commit takes."""
    size = _TRANSACTION_SIZE
    for row in commit.operations:
        size += _HEAD_SIZE + command_size(*row)
    return size


def command_size(*arguments: CommitArgument) -> int:
    """Return the bytes of the arguments of a command as the append-only file holds them."""
    return sum(len(str(argument).encode()) + _ARGUMENT_SIZE for argument in arguments)


_encoder: Final = msgspec.msgpack.Encoder()


def pack(commit: Commit) -> bytes:
    """Encode a commit as the argument of `commit.lua`: an array of its guards and its operations."""
    return _encoder.encode(commit)


def unpack(reply: str) -> CommitResult:
    """Read what `commit.lua` returned: nothing, or the key whose guard failed."""
    return Stale(reply) if reply else Committed()


COMMIT_LUA: Final = (Path(__file__).parent / "lua/commit.lua").read_bytes()
COMMIT_SHA: Final = hashlib.sha1(COMMIT_LUA, usedforsecurity=False).hexdigest()


async def run_commit(connection: CommandConnection, argument: bytes) -> CommitResult:
    """Run a packed commit in one round trip; two when the server does not know the script. Raises Unavailable."""
    (reply,) = await connection.call(("EVALSHA", COMMIT_SHA, 0, argument))
    if isinstance(reply, ReplyError) and str(reply).startswith("NOSCRIPT"):
        (reply,) = await connection.call(("EVAL", COMMIT_LUA, 0, argument))
    if isinstance(reply, ReplyError):
        raise error_of_reply(str(reply))
    return unpack(reply)
