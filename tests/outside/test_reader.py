"""A barcode starts a job, and a tag read at a serial port is the awaited event of this job."""

import contextlib
import os
import pty
import socket
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for

DEADLINE = 60.0
RECIPE: dict[str, Any] = {
    "steps": [{"name": "Wait", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Wait", "target": "Done", "condition": "actions.tag.done"}],
    "actions": [
        {"name": "tag", "step": "Wait", "qualifier": "N", "interaction": "pull_event", "type_id": "com.example.tag.v1"}
    ],
}


class Readers:
    """A barcode reader that is a TCP server, and an RFID reader at a pseudo terminal."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._ours, self._port = pty.openpty()
        tty.setraw(self._ours)
        self.path = os.ttyname(self._port)
        self._connection: socket.socket | None = None

    def scan(self, code: str) -> None:
        """Send a barcode on the connection of the gateway."""
        if self._connection is None:
            self._server.settimeout(DEADLINE)
            self._connection, _ = self._server.accept()
        self._connection.sendall(f"{code}\r\n".encode())

    def disconnect(self) -> None:
        """Close the connection; the next barcode waits for a new one."""
        assert self._connection
        self._connection.close()
        self._connection = None

    def read_tag(self, tag: str) -> None:
        """Send a tag at the serial port."""
        os.write(self._ours, f"\x02{tag}\x03".encode())

    def close(self) -> None:
        """Close everything."""
        self._server.close()
        if self._connection:
            self._connection.close()
        os.close(self._ours)
        os.close(self._port)


@pytest.fixture
def readers() -> Iterator[Readers]:
    with contextlib.closing(Readers()) as opened:
        yield opened


@pytest.fixture
def mes(tmp_path: Path, readers: Readers) -> Iterator[Mes]:
    """The MES of a station with both readers."""
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    broker.start()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[southbound.scanner]\nkind = "reader"\ntype_ids = ["com.example.code.v1"]\n'
        f'url = "tcp://127.0.0.1:{readers.port}"\npattern = "VIN-(?P<number>[0-9]+)"\ndedupe = 0.0\n'
        f'starts = "work_master"\nwork_master = "WM-1"\n'
        f'[southbound.rfid]\nkind = "reader"\ntype_ids = ["com.example.tag.v1"]\n'
        f'url = "serial://{readers.path}"\nframing = "stx"\n'
    )
    gateway, mes = Gateway(tmp_path / "gateway", "edge", settings), Mes(broker.port)
    with ended(broker, store, gateway), contextlib.closing(mes.client):
        store.start()
        gateway.start()
        mes.open()
        mes.configure("WM-1", RECIPE)
        yield mes


def test_barcode_starts_a_job_and_a_tag_continues_it(mes: Mes, readers: Readers) -> None:
    readers.scan("noise")
    readers.scan("VIN-7")
    mes.wait_for_state("VIN-7", "Running", DEADLINE)
    readers.scan("VIN-7")
    readers.disconnect()
    readers.scan("VIN-8")
    mes.wait_for_state("VIN-8", "Running", DEADLINE)
    readers.read_tag("RFID-1")
    mes.wait_for_state("VIN-7", "Ended", DEADLINE)
    wait_for(lambda: mes.result("VIN-7"), "the result of VIN-7", DEADLINE)
    assert mes.states("VIN-7").count("Running") == 1
    assert "RFID-1" in str(mes.result("VIN-7"))
    assert "Ended" not in mes.states("VIN-8")
