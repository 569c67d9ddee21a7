"""The script that carries out a commit, and how it is called."""

import hashlib
from pathlib import Path
from typing import Final

from edge.store.commit import CommitResult, unpack
from edge.store.connection import CommandConnection
from edge.store.errors import error_of_reply
from edge.store.pipeline import ReplyError

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
