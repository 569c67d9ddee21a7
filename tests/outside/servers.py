"""Starts the real programs as processes: broker, store and gateway; each can be killed, frozen and started again."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.free_ports import free_port

START_SECONDS = 60.0
STOP_SECONDS = 15.0
ROOT = Path(__file__).parents[2]
PREFIX = "plant"
SCOPE = "station-1"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def wait_for(condition: Callable[[], object], what: str, deadline: float = 60.0) -> None:
    """Wait until a condition is true; fail after `deadline` seconds.

    It pauses as long as it looks: a condition that calls a command keeps a processor busy for half of the time at most.
    """
    end = time.monotonic() + deadline
    begin = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now < end, f"not within {deadline:g} s: {what}"
        time.sleep(max(0.01, now - begin))
        begin = time.monotonic()


def accepts(port: int) -> bool:
    """Return whether a server accepts connections at a port of the loopback address."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class Clock:
    """The wall clock of one process, shifted by `clock_shim.c`."""

    def __init__(self, shim: Path, file: Path, seconds: float = 0.0) -> None:
        self._file = file
        self.environment = {"LD_PRELOAD": str(shim), "CLOCK_SHIM": str(file)}
        file.write_bytes(bytes(8))
        self.set(seconds)

    def set(self, seconds: float) -> None:
        """Step the clock: it differs from that of the machine by `seconds` from now on."""
        with self._file.open("r+b", buffering=0) as shift:
            shift.write(int(seconds * 1e9).to_bytes(8, sys.byteorder, signed=True))


class Server:
    """A process with a directory of its own."""

    def __init__(self, directory: Path, clock: Clock | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.log = directory / "log"
        self.environment = dict(clock.environment) if clock else {}
        """What its process gets in addition."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process
        return self._process.pid

    def launch(
        self,
        command: Sequence[str | Path],
        ready: Callable[[], bool],
        *,
        stdin: int = subprocess.DEVNULL,
        **environment: str,
    ) -> None:
        """Start the process and wait until it is ready."""
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=log,
                stderr=log,
                env={"PATH": _PATH} | kept | self.environment | environment,
            )
        end = time.monotonic() + START_SECONDS
        while not ready():
            assert self._process.poll() is None, f"{command[0]} ended: {self.log.read_text()[-2000:]}"
            assert time.monotonic() < end, f"{command[0]} is not ready: {self.log.read_text()[-2000:]}"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop it where it stands: connections stay, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen process."""
        os.kill(self.pid, signal.SIGCONT)

    @property
    def is_alive(self) -> bool:
        """Whether its process has not ended."""
        return self._process is not None and self._process.poll() is None

    def memory(self) -> float:
        """Return its resident memory in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Broker(Server):
    """A mosquitto that keeps its sessions in a database, as Debian's does."""

    port = 0
    further = ""
    """Further lines of its configuration."""

    def start(self) -> None:
        """Start it with the database as it is."""
        self.port = self.port or free_port()
        configuration = self.directory / "mosquitto.conf"
        # As root mosquitto would become another user, who cannot read this directory.
        user = "user root\n" if os.geteuid() == 0 else ""
        configuration.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n{user}"
            f"persistence true\npersistence_location {self.directory}/\nautosave_interval 1800\n"
            f"{self.further}"
        )
        self.launch(["mosquitto", "-c", configuration], lambda: accepts(self.port))

    def save(self) -> None:
        """Write the database now, as every half an hour."""
        database = self.directory / "mosquitto.db"
        before = database.stat().st_mtime_ns if database.exists() else 0
        os.kill(self.pid, signal.SIGUSR1)
        # mosquitto writes a new file and renames it.
        wait_for(lambda: database.exists() and database.stat().st_mtime_ns != before, "the database is written")


class Store(Server):
    """A redis-server that appends every command to a file."""

    @property
    def socket(self) -> Path:
        """Its Unix socket."""
        return self.directory / "redis.sock"

    def start(self) -> None:
        """Start it with the data as they are."""
        self.socket.unlink(missing_ok=True)
        self.launch(
            [
                *("redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.directory),
                *("--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"),
            ],
            lambda: self.socket.exists() and self.cli("ping") == "PONG",
        )

    def cli(self, *arguments: str) -> str:
        """Call redis-cli and return its output."""
        command = ["redis-cli", "-s", str(self.socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout.strip()


class Gateway(Server):
    """`edge run` with settings of its own; its readiness is what it notifies systemd of."""

    def __init__(self, directory: Path, name: str, settings: str, clock: Clock | None = None) -> None:
        super().__init__(directory, clock)
        self.status = ""
        """The last status line."""
        self._service_manager: socket.socket | None = None
        self.within: tuple[str | Path, ...] = ()
        """The command that runs the gateway; empty: itself."""
        self.settings = directory / "edge.toml"
        self.settings.write_text(f'[gateway]\nname = "{name}"\n{settings}')

    def start(self) -> None:
        """Start it and wait until it serves."""
        notified = self.directory / "notify.sock"
        notified.unlink(missing_ok=True)
        receiver = self._service_manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind(str(notified))
        receiver.settimeout(0.2)
        ready = threading.Event()
        threading.Thread(target=self._receive, args=(receiver, ready), daemon=True).start()
        self.launch([*self.within, EDGE, "run", "--settings", self.settings], ready.is_set, NOTIFY_SOCKET=str(notified))

    def _receive(self, receiver: socket.socket, ready: threading.Event) -> None:
        """Read what the gateway notifies; as with systemd, its messages must not queue up."""
        while True:
            try:
                lines = receiver.recv(4096).decode().splitlines()
            except TimeoutError:
                continue
            except OSError:
                return
            for line in lines:
                if line.startswith("STATUS="):
                    self.status = line.removeprefix("STATUS=")
                elif line == "READY=1":
                    ready.set()

    def wait_for_status(self, expected: Callable[[str], bool], what: str, deadline: float = 60.0) -> str:
        """Wait until the last status line is as expected, and return it."""
        wait_for(lambda: expected(self.status), what, deadline)
        return self.status

    def _end(self, number: int) -> None:
        # Its successor may be started while it ends.
        service_manager, self._service_manager = self._service_manager, None
        super()._end(number)
        if service_manager:
            service_manager.close()

    def cli(self, *arguments: str) -> str:
        """Call `edge` with these settings and return its output."""
        command = [str(EDGE), *arguments, "--settings", str(self.settings)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout


EDGE = Path(sysconfig.get_path("scripts")) / "edge"


@contextlib.contextmanager
def ended(*servers: Server) -> Iterator[None]:
    """Kill these servers at the exit."""
    try:
        yield
    finally:
        for server in servers:
            server.kill()


def build_clock_shim(directory: Path) -> Path:
    """Compile `clock_shim.c`."""
    return build_shim(Path(__file__).with_name("clock_shim.c"), directory)


def build_shim(source: Path, directory: Path) -> Path:
    """Compile a library that a process loads before all others."""
    shim = directory / f"{source.stem}.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", shim, source, "-ldl"], check=True)
    return shim
