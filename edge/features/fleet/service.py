"""Executes signed commands for this gateway: receives them, runs `edge`, sends the results."""

import asyncio
import contextlib
import functools
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from edge.access.components import Describe
from edge.access.sessions import session_id
from edge.app.logs import set_level
from edge.app.parts import GatewayParts, Works
from edge.features.fleet import signing_keys as fleet_keys
from edge.features.fleet import store as fleet
from edge.features.fleet.allowed_commands import COMMANDS, UPGRADE, FleetPolicy, argv
from edge.features.fleet.command_service import MOST_OUTPUT, FleetAnswer, FleetService
from edge.features.fleet.receipt import FleetInbox, FleetWatch, remove_expired
from edge.features.fleet.settings import FleetSettings
from edge.features.fleet.signature import FleetCommand, PublicKey
from edge.features.fleet.upgrade_record import follow_upgrade, request_upgrade
from edge.foundation.computer import child_environment
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.user import Session
from edge.store import logins
from edge.store.background import retry_while_unavailable
from edge.store.client import Store

_COMMAND_WITHIN_S = 120.0
_MOST_OUTPUT_BYTES = 4 * MOST_OUTPUT
_CHUNK = 65_536
_SESSION_MS = round(1000 * _COMMAND_WITHIN_S) + 10_000
LOG_LEVELS = ("debug", "info", "warning", "error")
_USUAL_MINUTES = "60"
_MOST_MINUTES = 1440
_RECORDING = "--seconds=60"
"""A recording ends before the time of a command does; a later option of the same name replaces this one."""
_SIGNAL_AFTER_S = 0.5
"""The time in which the result of a reload or restart is sent."""


async def open_fleet(stack: contextlib.AsyncExitStack, parts: GatewayParts, works: Works) -> None:
    """Execute signed commands until the stack closes."""
    settings = parts.settings.section(FleetSettings)
    policy = FleetPolicy(parts.settings.gateway.name, settings.labels, settings.allow)
    name, level = parts.settings.gateway.name, parts.settings.logging.level
    executor = FleetExecutor(works.describe, works.settings_file, Path(settings.directory), parts.store, name, level)

    async def execute(command: FleetCommand, text: str, signer: str) -> str:
        if command.cmd == UPGRADE:
            return await request_upgrade(command.jti, text)
        return await executor.execute(command.cmd, command.args, signer)

    keys = _key_loader(parts.store, settings.keys_from, Path(settings.keys))
    service = FleetService(parts.store, policy, keys, execute, now_ms, parts.trail.record)
    match settings.listen:
        case "mqtt":
            session = parts.health.sessions["MES"]
            inbox = FleetInbox(session, service, settings.topic_prefix)
            await inbox.open()
            finish = functools.partial(_finish_begun, service, inbox.publish)
            await parts.keep_running(stack, "fleet results", finish)
        case _:
            finish = functools.partial(_finish_begun, service, _keep)
            await parts.keep_running(stack, "fleet results", finish)
            await remove_expired(parts.store, now_ms() // 1000)
            await parts.keep_running(stack, "fleet commands", FleetWatch(parts.store, service).run)


async def _finish_begun(service: FleetService, publish: Callable[[FleetAnswer], Awaitable[None]]) -> None:
    """Write and publish the results of commands that a former process had begun; upgrades continue, and come last."""
    for finish in (service.recover, functools.partial(service.follow_upgrades, follow_upgrade)):
        for answer in await retry_while_unavailable("fleet results", finish):
            await retry_while_unavailable("fleet results", functools.partial(publish, answer))


async def _keep(_: FleetAnswer) -> None:
    """Publish nothing: the result is in the store that the components share."""


def _key_loader(store: Store, keys_from: str, folder: Path) -> Callable[[], Awaitable[Mapping[str, PublicKey]]]:
    async def from_store() -> Mapping[str, PublicKey]:
        return fleet_keys.usable(await fleet.load_keys(store))

    async def from_folder() -> Mapping[str, PublicKey]:
        return await asyncio.to_thread(fleet_keys.read_folder, folder)

    return from_store if keys_from == "store" else from_folder


class FleetExecutor:
    """Runs commands as child processes: a command that fails or hangs does not touch the gateway.

    A changing command gets a session of the person who signed it: the settings may require a login, and the store
    names who has switched something.
    """

    def __init__(
        self,
        describe: Describe,
        settings_file: Path | None,
        directory: Path,
        store: Store,
        gateway: str,
        log_level: str = "info",
    ) -> None:
        self._describe = describe
        self._common = ("--settings", str(settings_file)) if settings_file else ()
        self._directory = directory
        self._store = store
        self._gateway = gateway
        self._log_level = log_level
        self._usual_level_due: asyncio.TimerHandle | None = None

    async def execute(self, command: str, arguments: tuple[str, ...], signer: str) -> str:
        """Execute a command of a person; return its output. Raises Refused when it fails, Unavailable after a time."""
        match command:
            case "status":
                report = await self._describe()
                return msgspec.json.encode(report).decode()
            case "reload":
                _signal_later(signal.SIGHUP)
                return ""
            case "restart":
                _signal_later(signal.SIGTERM)
                return ""
            case "log-level":
                return self._set_log_level(argv(command, arguments))
            case "support-bundle":
                file = await self._new_file("support.tar.gz")
                return await self._run(command, ["support-bundle", *self._common, str(file)], signer)
            case "record":
                file = await self._new_file("recording.jsonl")
                wanted = argv(command, (_RECORDING, *arguments), self._common)
                return await self._run(command, [*wanted, str(file)], signer)
            case _:
                return await self._run(command, argv(command, arguments, self._common), signer)

    async def _new_file(self, name: str) -> Path:
        """Return the path of a file of a command; the one of the command before is removed."""
        file = self._directory / name
        await asyncio.to_thread(self._directory.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(file.unlink, missing_ok=True)
        return file

    def _set_log_level(self, wanted: list[str]) -> str:
        """Set the level of the log for some minutes; return what was set. Raises Refused for anything else."""
        name, *options = reversed(wanted)
        minutes = next(
            (option.partition("=")[2] for option in options if option.startswith("--minutes=")), _USUAL_MINUTES
        )
        is_number = minutes.isdecimal() and minutes.isascii() and len(minutes) <= len(str(_MOST_MINUTES))
        if name not in LOG_LEVELS or not is_number or not 0 < int(minutes) <= _MOST_MINUTES:
            levels = ", ".join(LOG_LEVELS)
            raise Refused(
                "fleet",
                Text.of(
                    "the levels are {levels}, for at most {most_minutes} minutes",
                    levels=levels,
                    most_minutes=_MOST_MINUTES,
                ),
                "Correct them.",
            )
        set_level(name)
        if self._usual_level_due is not None:
            self._usual_level_due.cancel()
        loop = asyncio.get_running_loop()
        self._usual_level_due = loop.call_later(60 * int(minutes), set_level, self._log_level)
        return f"{name} for {minutes} min, then {self._log_level}"

    async def _run(self, command: str, arguments: list[str], signer: str) -> str:
        if not COMMANDS[command].changes:
            return await _run_edge(arguments, {})
        async with self._session(command, signer) as key:
            return await _run_edge(arguments, {"EDGE_FLEET_SESSION": key})

    @contextlib.asynccontextmanager
    async def _session(self, command: str, signer: str) -> AsyncIterator[str]:
        """Open a session of the command line for the length of the block; yield its key."""
        key, keys = secrets.token_urlsafe(32), self._store.keys
        session = Session(
            user=signer, role="engineer", way="cli", instance=self._gateway, since=now_ms(), client=f"edge {command}"
        )
        await self._store.commit(logins.put_session(keys, session_id(key), session, _SESSION_MS))
        try:
            yield key
        finally:
            with contextlib.suppress(Unavailable):  # it expires
                await self._store.commit(logins.remove_sessions(keys, [session_id(key)]))


def _signal_later(number: signal.Signals) -> None:
    asyncio.get_running_loop().call_later(_SIGNAL_AFTER_S, os.kill, os.getpid(), number)


async def _run_edge(arguments: list[str], environment: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**child_environment(), **environment},
    )
    try:
        async with asyncio.timeout(_COMMAND_WITHIN_S):
            output, errors, _ = await asyncio.gather(_head_of(process.stdout), _head_of(process.stderr), process.wait())
    except TimeoutError as error:
        raise Unavailable(
            Text.of("the command did not end within {command_within_s:.0f} s", command_within_s=_COMMAND_WITHIN_S)
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    # A command that reports faults of what it examines has an output, too.
    if process.returncode and not output:
        reason = errors.decode(errors="replace").strip()[-1000:] or Text.of(
            "exit status {returncode}", returncode=process.returncode
        )
        raise Refused("fleet", reason)
    return output.decode(errors="replace").strip()


async def _head_of(stream: asyncio.StreamReader | None) -> bytes:
    """Read a stream to its end and return its first bytes: a long output must not fill the memory of the gateway."""
    found = bytearray()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        found += chunk[: _MOST_OUTPUT_BYTES - len(found)]
    return bytes(found)
