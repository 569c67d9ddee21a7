"""What every scene of the demo needs: its command lines, a deadline, its address for clients and its station page."""

import asyncio
import json
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from edge.access.password_hash import hash_password
from edge.access.users import User, write_user
from edge.features.simulator.process import Process, open_process
from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.host_addresses import free_port
from edge.model.user import Role

# On a small board, a device with an OPC UA server starts slowly; in qemu on a busy machine everything does.
DEADLINE_SECONDS = 900.0
_POLL_SECONDS = 0.02

GiveUp: TypeAlias = Callable[[Unavailable], None]


def edge_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of `edge`; -P ignores a module of this name in the current directory."""
    return (sys.executable, "-P", "-m", "edge", *arguments)


def opcua_section(directory: Path, endpoint: str) -> str:
    """Return the settings of the OPC UA server: a client on this host may call methods, one elsewhere may only read."""
    text = partial(json.dumps, ensure_ascii=False)
    return f"""\
[opcua]
endpoint = {text(endpoint)}
security = "none"
anonymous = "operator"
users_file = {text(str(directory / "opcua-users"))}
trusted = {text(str(directory / "trusted"))}
pki = {text(str(directory / "pki"))}
"""


def scene_settings(directory: Path, broker: str, scope: str, endpoint: str) -> str:
    """Return the settings that the gateways of all scenes share; strings are the same in JSON and in TOML."""
    text = partial(json.dumps, ensure_ascii=False)
    return f"""\
[gateway]
name = "demo"
scopes = [{text(scope)}]

[redis]
url = {text(f"embedded:{directory / 'store'}")}

[station]
files = ""

[mqtt]
url = {text(broker)}

{opcua_section(directory, endpoint)}"""


class DemoLimit:
    """The time limit of a demo; `give_up` ends the demo at once with the failure of a part."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self.failure: Unavailable | None = None
        self._timeout = timeout

    def give_up(self, failure: Unavailable) -> None:
        """End the demo; the first failure is its reason."""
        self.failure = self.failure or failure
        self._timeout.reschedule(asyncio.get_running_loop().time())

    def lift(self) -> None:
        """Remove the time limit of a finished demo."""
        self._timeout.reschedule(None)


@asynccontextmanager
async def limit_demo() -> AsyncIterator[DemoLimit]:
    """Limit the block to DEADLINE_SECONDS; raises Unavailable with the first failure of a part, or for the time."""
    limit = None
    try:
        async with asyncio.timeout(DEADLINE_SECONDS) as timeout:
            limit = DemoLimit(timeout)
            yield limit
    except TimeoutError:
        if limit and limit.failure:
            raise limit.failure from None
        raise Unavailable(
            Text.of(
                "the demo did not come to its end within {deadline_seconds:.0f} s", deadline_seconds=DEADLINE_SECONDS
            )
        ) from None


async def wait_until(condition: Callable[[], bool | Awaitable[bool]], seconds: float) -> bool:
    """Wait for a condition for at most `seconds`; return whether it became true."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return True
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_POLL_SECONDS)


DEFAULT_PORT = 4840
"""The IANA port of OPC UA, the default of clients."""

_LOOPBACK = "127.0.0.1"
_ALL_NETWORKS = "0.0.0.0"  # noqa: S104 - used only on request of the user
_ELSEWHERE = ("192.0.2.1", 9)
"""A documentation address without a machine (RFC 5737); connecting a UDP socket sends no packet."""


class OpcuaAddress(Struct, frozen=True):
    """The IPv4 address and port at which the OPC UA server listens; port 0 selects a free port."""

    host: str = _LOOPBACK
    port: int = 0

    def with_free_port(self) -> "OpcuaAddress":
        """Return the address with a port that is free now; raises Unavailable when the requested port is in use."""
        if not self.port:
            return replace(self, port=free_port())
        try:
            with socket.create_server((self.host, self.port)):
                return self
        except OSError as error:
            message = Text.of(
                "the OPC UA server cannot listen on {host}:{port}: {reason}",
                host=self.host,
                port=self.port,
                reason=error.strerror,
            )
            raise Unavailable(message, "Choose another port or address: --port, --listen.") from error

    @property
    def endpoint(self) -> str:
        """Return the value of the setting `[opcua] endpoint`."""
        return f"opc.tcp://{self.host}:{self.port}"

    @property
    def local(self) -> str:
        """Return the address for a client on this machine."""
        return f"opc.tcp://{_LOOPBACK if self.host == _ALL_NETWORKS else self.host}:{self.port}"

    @property
    def remote(self) -> str:
        """Return the address for a client on another machine."""
        return f"opc.tcp://{_own_address() if self.host == _ALL_NETWORKS else self.host}:{self.port}"


def _own_address() -> str:
    """Return the address of this machine on its default network, or its host name."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


NAME = "demo"
_USERS_FILE = "people"


class DemoPage(Struct, frozen=True):
    """The page at a free port of this host; the person has a password of this run."""

    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @property
    def address(self) -> str:
        """Return the address for a browser on this machine."""
        return f"http://localhost:{self.port}/"

    def section(self, users_file: Path) -> str:
        """Write the user, and return the sections of the settings."""
        write_user(users_file, User(NAME, Role.ENGINEER, hash_password(self.password)))
        return f"""
[web]
listen = "127.0.0.1:{self.port}"
kiosk = "on"

[users]
file = {json.dumps(str(users_file))}
"""


def page_section(page: DemoPage | None, directory: Path) -> str:
    """Return the settings of the page with its user in a directory; nothing without a page."""
    return page.section(directory / _USERS_FILE) if page else ""


def repeated(page: DemoPage | None, work: Callable[[], Coroutine[Any, Any, None]]) -> AbstractAsyncContextManager[None]:
    """Run work during the block where there is a page, which shows what happens."""
    return background_task(work(), "scene") if page else nullcontext()


@asynccontextmanager
async def open_demo_gateway(directory: Path, settings: str, on_end: GiveUp) -> AsyncIterator[Process]:
    """Run a gateway with settings in `edge.toml` of a directory for the length of the block, when it is ready."""
    file = directory / "edge.toml"
    file.write_text(settings)
    command = edge_command("run", "--settings", str(file))
    async with open_process("gateway", command, directory / "gateway.log", "serving=", on_end) as gateway:
        await gateway.wait_until_ready()
        yield gateway


@contextmanager
def quoting_last_lines(gateway: Process) -> Iterator[None]:
    """Raise Unavailable with what a gateway said last for an expected error in the block."""
    try:
        yield
    except EdgeError as error:
        message = Text.of(
            "{reason}\nthe gateway said last:\n{last_lines}", reason=error, last_lines=gateway.last_lines()
        )
        raise Unavailable(message, error.advice_text) from error
