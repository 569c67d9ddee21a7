"""What the station page shows of the machine: findings, log, certificates and users of the gateway."""

import asyncio
import contextlib
import logging
import sys
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from edge.access.users import public_user, read_users
from edge.app.logs import journal_entry
from edge.app.parts import GatewayParts
from edge.app.recipe_process import RecipeProcess
from edge.config import Settings
from edge.features.page.gateway_models import LogLine
from edge.features.page.recipe_check import CheckRequest
from edge.features.page.recipe_models import RecipeResult
from edge.features.page.services import GatewayTools
from edge.foundation.errors import LocalFault, Refused
from edge.foundation.text import Text
from edge.model.certificate import PublicCertificate
from edge.model.finding import HealthFinding
from edge.model.instant import rfc3339
from edge.model.user import PublicUser
from edge.opcua.application_certificate import certificate_files
from edge.uaserver.application_trust import add_certificate, rejected_directory
from edge.uaserver.certificates import load_certificate, public_certificate, thumbprint

_LINES: Final = 500
_LONGEST_LINE: Final = 500


class LogMemory(logging.Handler):
    """Keeps the newest records of the log in memory, each shortened."""

    def __init__(self, lines: int = _LINES) -> None:
        super().__init__()
        self.lines: deque[LogLine] = deque(maxlen=lines)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        try:
            text, _ = journal_entry(record)
        except Exception:  # noqa: BLE001 - as in every handler: a logging failure must not stop the caller
            self.handleError(record)
            return
        at = rfc3339(round(record.created * 1000))
        self.lines.append(LogLine(at=at, level=record.levelname.lower(), text=text[:_LONGEST_LINE]))


@contextlib.contextmanager
def remembered_log() -> Iterator[LogMemory]:
    """Keep the newest records of the log for the length of the block."""
    memory, root = LogMemory(), logging.getLogger()
    root.addHandler(memory)
    try:
        yield memory
    finally:
        root.removeHandler(memory)


_CHECKS: Final = "edge.features.page.recipe_check"
_DOCTOR: Final = "edge.features.admin.doctor"
_DOCTOR_S: Final = 15.0
_SIMULATION_S: Final = 15.0
_MOST_SIMULATIONS: Final = 4
_MOST_OUTPUT: Final = 2_000_000
_KEPT_FINDINGS_S: Final = 10.0


def gateway_tools(parts: GatewayParts, settings_file: Path | None, memory: LogMemory) -> GatewayTools:
    """Return what the page asks of the machine."""
    doctor, checks = _Doctor(settings_file), RecipeProcess(_CHECKS)
    return GatewayTools(
        examine=doctor.examine,
        log=lambda: tuple(memory.lines),
        certificates=lambda: asyncio.to_thread(_certificates, parts),
        trust=lambda thumbprint: asyncio.to_thread(_trust, parts, thumbprint),
        check=partial(check_apart, checks.ask),
        simulate=Simulator(run_edge).simulate,
        people=lambda: asyncio.to_thread(_people, parts.settings),
        refresh_mode=parts.mode.refresh,
        close=checks.close,
    )


async def check_apart(
    ask: Callable[[bytes], Awaitable[bytes]], recipe: Any, active: Sequence[str], language: str
) -> RecipeResult:
    """Return the faults and the chart of a recipe, as another process finds them. Raises as `RecipeProcess.ask`."""
    result = await ask(msgspec.json.encode(CheckRequest(recipe, tuple(active), language)))
    return msgspec.json.decode(result, type=RecipeResult)


class _Doctor:
    """Runs the examinations of `edge doctor` in a process of its own, one at a time: they block."""

    def __init__(self, settings_file: Path | None) -> None:
        self._settings_file = settings_file
        self._lock = asyncio.Lock()
        self._found: tuple[HealthFinding, ...] = ()
        self._until = 0.0

    async def examine(self) -> tuple[HealthFinding, ...]:
        """Return the findings, at most ten seconds old. Raises LocalFault when the process fails."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            if loop.time() >= self._until:
                self._found = await self._run()
                self._until = loop.time() + _KEPT_FINDINGS_S
            return self._found

    async def _run(self) -> tuple[HealthFinding, ...]:
        named = (str(self._settings_file),) if self._settings_file else ()
        ended = await run_module(_DOCTOR, named, "doctor", _DOCTOR_S)
        try:
            return msgspec.json.decode(ended.output, type=tuple[HealthFinding, ...])
        except msgspec.DecodeError as error:
            raise LocalFault("edge doctor returned no findings", "Call it in a terminal: edge doctor") from error


class Simulator:
    """Runs `edge simulate` in a process of its own, one at a time: many would take the memory of the gateway."""

    def __init__(self, run: "RunEdge", most_waiting: int = _MOST_SIMULATIONS) -> None:
        self._run = run
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._most_waiting = most_waiting

    async def simulate(self, recipe: Any, script: Any) -> dict[str, Any]:
        """Return what the simulation prints. Raises Refused for an invalid script, and while too many wait."""
        if self._waiting >= self._most_waiting:
            raise Refused(
                "busy",
                Text.of("{waiting} simulations wait for their turn.", waiting=self._waiting),
                "Try again in a few seconds.",
            )
        self._waiting += 1
        try:
            async with self._lock:
                with tempfile.TemporaryDirectory(prefix="edge-simulate-") as folder:
                    return await self._simulate(folder, recipe, script)
        finally:
            self._waiting -= 1

    async def _simulate(self, folder: str, recipe: Any, script: Any) -> dict[str, Any]:
        files = {"recipe": Path(folder, "recipe.json"), "script": Path(folder, "script.json")}
        files["recipe"].write_bytes(msgspec.json.encode(recipe))
        named: tuple[str, ...] = ()
        if script is not None:
            files["script"].write_bytes(msgspec.json.encode(script))
            named = ("--script", str(files["script"]))
        ended = await self._run("simulate", str(files["recipe"]), *named, "--json", within_s=_SIMULATION_S)
        if ended.status:
            reason = ended.errors.decode(errors="replace").replace(folder, "").strip()[:1000]
            raise Refused(
                "invalid_script", Text.of("the simulation is refused: {reason}", reason=reason), "Correct the script."
            )
        found: dict[str, Any] = msgspec.json.decode(ended.output)
        return found


class EndedCommand(Struct, frozen=True):
    """How a command of this program ended, and what it printed."""

    status: int
    output: bytes
    errors: bytes


class RunEdge(Protocol):
    """Runs a command of this program."""

    async def __call__(self, *arguments: str, within_s: float) -> EndedCommand:
        """Return how it ended. Raises as `run_edge` does."""
        ...


async def run_edge(*arguments: str, within_s: float, most_bytes: int = _MOST_OUTPUT) -> EndedCommand:
    """Run a command of this program. Raises LocalFault when it takes too long, Refused when it prints too much."""
    return await run_module("edge", arguments, arguments[0], within_s, most_bytes)


async def run_module(
    module: str, arguments: Sequence[str], command: str, within_s: float, most_bytes: int = _MOST_OUTPUT
) -> EndedCommand:
    """Run a module that does the work of a command. Raises as `run_edge` does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within_s):
            output, errors = await asyncio.gather(_read(process.stdout, most_bytes), _read(process.stderr, most_bytes))
            return EndedCommand(await process.wait(), output, errors)
    except TimeoutError:
        message = Text.of("edge {command} took more than {within_s:g} s", command=command, within_s=within_s)
        raise LocalFault(message, Text.of("Call it in a terminal: edge {command}", command=command)) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _read(stream: asyncio.StreamReader | None, most_bytes: int) -> bytes:
    found = bytearray()
    while stream and (part := await stream.read(1 << 16)):
        found += part
        if len(found) > most_bytes:
            raise Refused(
                "too_long",
                Text.of("it prints more than {most_bytes} bytes.", most_bytes=most_bytes),
                "Shorten the horizon of the script.",
            )
    return bytes(found)


def _people(settings: Settings) -> tuple[PublicUser, ...]:
    users = read_users(Path(settings.users_file)).values()
    return tuple(public_user(user, settings.users.totp) for user in users)


def _certificates(parts: GatewayParts) -> tuple[PublicCertificate, ...]:
    """Return the certificates of the OPC UA server and of its clients; none while it is off."""
    settings = parts.settings.opcua
    if not settings.endpoint:
        return ()
    own = load_certificate(Path(settings.pki))
    public_certificates = [public_certificate(own, "own")] if own else []
    with _file_errors():
        rejected = [file.certificate for file in certificate_files(rejected_directory(Path(settings.pki)))]
        trusted = [file.certificate for file in certificate_files(Path(settings.trusted))]
    public_certificates += [public_certificate(certificate, "rejected") for certificate in rejected]
    public_certificates += [public_certificate(certificate, "trusted") for certificate in trusted]
    return tuple(public_certificates)


def _trust(parts: GatewayParts, wanted: str) -> str:
    """Trust a rejected certificate and return its subject. Raises Refused for an unknown one."""
    settings = parts.settings.opcua
    rejected = rejected_directory(Path(settings.pki))
    with _file_errors():
        files = [file for file in certificate_files(rejected) if thumbprint(file.certificate).upper() == wanted]
        if not files:
            advice = "Look at the list of certificates."
            raise Refused(
                "unknown_certificate",
                Text.of("no rejected certificate has the thumbprint {wanted}.", wanted=wanted),
                advice,
            )
        add_certificate(files[0].certificate, Path(settings.trusted))
        for entry in files:
            entry.path.unlink(missing_ok=True)
    return str(files[0].certificate.subject.rfc4514_string())


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "The service needs access to the folders of [opcua] pki and trusted."
        raise Refused(
            "file", Text.of("{filename}: {reason}", filename=error.filename, reason=error.strerror), advice
        ) from error
