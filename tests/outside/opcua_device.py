"""Starts the controller and the camera of another vendor's stack (node-opcua); their own log is what is judged by."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.free_ports import free_port
from tests.outside.servers import ROOT, START_SECONDS, Server, wait_for

_PROGRAMS = Path(__file__).with_name("devices")


class OpcuaDevice(Server):
    """A simulated device, `controller` or `camera`; its work takes `milliseconds`, `mode` is that of its program."""

    def __init__(self, directory: Path, program: str, milliseconds: int, mode: str = "") -> None:
        super().__init__(directory)
        self._program = program
        self._milliseconds = milliseconds
        self._mode = mode
        self._port = free_port()

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"opc.tcp://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        installed = ROOT / ".node" / "node_modules"
        assert (installed / "node-opcua-server").is_dir(), "run make setup: it installs node-opcua-server"
        starts = self.count("listening") + 1
        arguments = (str(self._port), self.directory / "pki", str(self._milliseconds), self._mode)
        self.launch(
            ["node", _PROGRAMS / f"{self._program}.js", *arguments],
            lambda: self.count("listening") == starts,
            stdin=subprocess.PIPE,
            NODE_PATH=str(installed),
        )

    def cut(self, milliseconds: int) -> None:
        """Break every connection now, and accept none for a while; the device works on."""
        self._order(f"cut {milliseconds}", "cut")

    def trigger(self) -> None:
        """Trigger the tool as its operator does, for a bolt of no command."""
        self._order("trigger", "triggered")

    def heat(self, value: float, status: str = "Good") -> None:
        """Write the temperature of an oven, with the name of a StatusCode."""
        self._order(f"set {value:g} {status}", "set")

    def order(self, order: str) -> None:
        """Pass an order that the head of its program explains; return when it is carried out."""
        before = self.values("ordered").count(order)
        self._send(order)
        wait_for(lambda: self.values("ordered").count(order) > before, f"{order} in {self.log}", START_SECONDS)

    def _order(self, order: str, logged: str) -> None:
        before = self.count(logged)
        self._send(order)
        wait_for(lambda: self.count(logged) > before, f"{logged} in {self.log}", START_SECONDS)

    def _send(self, order: str) -> None:
        assert self._process
        assert self._process.stdin
        os.write(self._process.stdin.fileno(), f"{order}\n".encode())

    def records(self) -> list[dict[str, Any]]:
        """Return its own log from the first start on."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    def values(self, what: str) -> list[Any]:
        """Return what it logged under a name, in order."""
        return [record[what] for record in self.records() if what in record]

    def count(self, what: str) -> int:
        """Return how often it logged something."""
        return len(self.values(what))

    def wait_for(self, what: str, times: int = 1) -> None:
        """Wait until it has logged something so often."""
        wait_for(lambda: self.count(what) >= times, f"{times} x {what}: {self.log}", START_SECONDS)
