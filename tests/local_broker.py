"""A temporary mosquitto broker that a test can freeze, kill and bring to lose its state."""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from edge.links.local_broker import STOP_SECONDS, LocalBroker, find_mosquitto


class OwnBroker(LocalBroker):
    """A broker with the faults of a real one; each of them can be called at any time."""

    def freeze(self) -> None:
        """Suspend the broker: connections stay open, no packet is answered."""
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the suspended broker."""
        if self._process:
            self._process.send_signal(signal.SIGCONT)

    def reload(self) -> None:
        """Reload the configuration and the access rules of the broker (SIGHUP)."""
        if self._process:
            self._process.send_signal(signal.SIGHUP)

    async def save(self) -> None:
        """Write the state of the broker to disk and return once the file is written."""
        if self._process is None:
            return
        before = self._stored_file()
        self._process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(STOP_SECONDS):
            while self._stored_file() in {None, before}:
                if self._process.returncode is not None:
                    raise self._failed()
                await asyncio.sleep(0.01)

    def _stored_file(self) -> tuple[int, int] | None:
        """Return what identifies the written file: the time of a file may be earlier than the clock by some ms."""
        try:
            state = (self.directory / "mosquitto.db").stat()
        except FileNotFoundError:
            return None
        return state.st_ino, state.st_mtime_ns

    async def kill(self) -> None:
        """Kill the broker: it loses all state that is not stored yet."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()

    def forget(self) -> None:
        """Delete the stored state, to act as a broker without persistence; allowed only while it is stopped."""
        (self.directory / "mosquitto.db").unlink(missing_ok=True)


@asynccontextmanager
async def open_broker(*further: str) -> AsyncIterator[OwnBroker]:
    """Run a broker for the length of the block; `further` are additional lines of its configuration."""
    with tempfile.TemporaryDirectory(prefix="edge-mosquitto-") as directory:
        broker = OwnBroker(find_mosquitto(), Path(directory), further)
        await broker.start()
        try:
            yield broker
        finally:
            await broker.stop()
