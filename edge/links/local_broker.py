"""A temporary mosquitto broker on a free loopback port."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.links.host_addresses import free_port

START_SECONDS = 30.0
STOP_SECONDS = 5.0
# Debian installs daemons in folders outside the PATH of an ordinary user.
_DAEMON_DIRECTORIES = ("/usr/sbin", "/usr/local/sbin")


class LocalBroker:
    """A mosquitto broker with its own directory; its stored state survives `stop` and `start`."""

    def __init__(self, program: str, directory: Path, further: Sequence[str] = ()) -> None:
        """Create a broker; `further` are additional lines of its configuration (mosquitto.conf(5))."""
        self._program = program
        self.directory = directory
        self._further = further
        self._process: asyncio.subprocess.Process | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Return the address for the setting `mqtt.url`."""
        return f"mqtt://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start the broker and wait until it accepts connections; raises Unavailable with the end of its log."""
        configuration = self.directory / "mosquitto.conf"
        configuration.write_text(_configuration(self.port, self.directory, self._further))
        with (self.directory / "mosquitto.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                self._program,
                "-c",
                str(configuration),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await self._accepts():
                    if self._process.returncode is not None:
                        raise self._failed()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            await self.stop()
            raise self._failed() from None

    async def stop(self) -> None:
        """Stop the broker with SIGTERM, so that it stores its sessions; kill it after STOP_SECONDS."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _accepts(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    def _failed(self) -> Unavailable:
        last_words = (self.directory / "mosquitto.log").read_text(errors="replace")[-1000:]
        return Unavailable(
            Text.of("mosquitto did not start on port {port}:\n{last_words}", port=self.port, last_words=last_words)
        )


def find_mosquitto(program: str = "mosquitto") -> str:
    """Return the path of the broker's program. Raises Unavailable when it is not installed."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_DAEMON_DIRECTORIES))
    found = shutil.which(program, path=path)
    if found is None:
        raise Unavailable(
            Text.of("{program} is not installed", program=program), "Install it: sudo apt-get install mosquitto"
        )
    return found


@asynccontextmanager
async def open_broker() -> AsyncIterator[LocalBroker]:
    """Start a broker without password and with persistence; stop it and remove its files at the exit.

    Raises Unavailable when mosquitto is not installed or does not start.
    """
    program = find_mosquitto()
    with tempfile.TemporaryDirectory(prefix="edge-mosquitto-") as directory:
        broker = LocalBroker(program, Path(directory))
        await broker.start()
        try:
            yield broker
        finally:
            await broker.stop()


def _configuration(port: int, directory: Path, further: Sequence[str]) -> str:
    lines = [
        f"listener {port} 127.0.0.1",
        "allow_anonymous true",
        "persistence true",
        f"persistence_location {directory}/",
        # Nagle's algorithm delays a small packet until the previous packet is acknowledged.
        "set_tcp_nodelay true",
    ]
    if os.geteuid() == 0:
        # Started by root, mosquitto switches to a user that cannot write to this directory.
        lines.append("user root")
    return "\n".join((*lines, *further, ""))
