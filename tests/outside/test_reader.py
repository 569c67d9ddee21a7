"""A barcode starts a job, and a tag read at a serial port is the awaited event of this job."""

import contextlib
import json
import os
import pty
import re
import socket
import tomllib
import tty
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Clock, Gateway, Store, ended, wait_for

SFC = Path(__file__).parents[2] / "docs" / "reference" / "sfc.md"
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
        self.send(f"{code}\r\n".encode())

    def send(self, raw: bytes) -> None:
        """Send bytes on the connection of the gateway."""
        if self._connection is None:
            self._server.settimeout(DEADLINE)
            self._connection, _ = self._server.accept()
        self._connection.sendall(raw)

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
def clock(shim: Path, tmp_path: Path) -> Clock:
    """The wall clock of the gateway."""
    return Clock(shim, tmp_path / "clock")


@pytest.fixture
def gateway(tmp_path: Path, readers: Readers, clock: Clock) -> Iterator[Gateway]:
    """The gateway of a station with both readers."""
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    broker.start()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[southbound.scanner]\nkind = "reader"\ntype_ids = ["com.example.code.v1"]\n'
        f'url = "tcp://127.0.0.1:{readers.port}"\npattern = "(?s)VIN-(?P<number>[0-9]+)|01.*"\n'
        'dedupe = 0.0\ngs1 = "auto"\n'
        f'starts = "work_master"\nwork_master = "WM-1"\n'
        f'[southbound.rfid]\nkind = "reader"\ntype_ids = ["com.example.tag.v1"]\n'
        f'url = "serial://{readers.path}"\nframing = "stx"\ndedupe = 0.001\n'
    )
    gateway = Gateway(tmp_path / "gateway", "edge", settings, clock)
    with ended(broker, store, gateway):
        store.start()
        gateway.start()
        yield gateway


@pytest.fixture
def mes(gateway: Gateway) -> Iterator[Mes]:
    """The MES of this station."""
    mes = Mes(broker_port(gateway))
    with contextlib.closing(mes.client):
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


def test_gs1_code_with_separators_starts_a_job(mes: Mes, readers: Readers) -> None:
    job = "010950110153000310AB-123%1D21SER1"
    readers.send(b"VIN-\xdc\r\n")
    readers.send(b"010950110153000310AB-123\x1d21SER1\r\n")
    mes.wait_for_state(job, "Running", DEADLINE)
    mes.client.subscribe(f"{PREFIX}/{mes.scope}/order/+")
    wait_for(lambda: order_of(mes, job), "the retained order", DEADLINE)
    assert {parameter["ID"]: parameter["Value"] for parameter in order_of(mes, job)["JobOrderParameters"]} == {
        "code": "010950110153000310AB-123\x1d21SER1",
        "gs1_01": "09501101530003",
        "gs1_10": "AB-123",
        "gs1_21": "SER1",
    }


def test_code_without_a_line_end_is_a_problem_and_not_joined(mes: Mes, readers: Readers, gateway: Gateway) -> None:
    """Before, nothing was reported until the next code, and both were taken as one."""

    def problem() -> str:
        return str(json.loads(gateway.cli("equipment", "show", "scanner", "--json"))[0]["problem"])

    readers.send(b"VIN-7")
    wait_for(lambda: "no line end" in problem(), "the problem of the reader")
    readers.scan("VIN-8")
    mes.wait_for_state("VIN-8", "Running", DEADLINE)
    wait_for(lambda: "no line end" not in problem(), "the reader has no problem")
    assert "VIN-7" in gateway.cli("refused")


def test_code_counts_again_after_the_clock_was_set_back(mes: Mes, readers: Readers, clock: Clock) -> None:
    """Before, the next reading of each code that had been read before the step was ignored."""
    readers.scan("VIN-7")
    mes.wait_for_state("VIN-7", "Running", DEADLINE)
    readers.read_tag("RFID-1")
    mes.wait_for_state("VIN-7", "Ended", DEADLINE)
    clock.set(-3600.0)
    readers.scan("VIN-8")
    mes.wait_for_state("VIN-8", "Running", DEADLINE)
    readers.read_tag("RFID-1")
    mes.wait_for_state("VIN-8", "Ended", DEADLINE)


def broker_port(gateway: Gateway) -> int:
    """Return the port of the broker in the settings of a gateway."""
    url: str = tomllib.loads(gateway.settings.read_text())["mqtt"]["url"]
    return int(url.rpartition(":")[2])


def order_of(mes: Mes, job: str) -> Any:
    """Return the job order that is retained; None where there is none."""
    topic = f"{PREFIX}/{mes.scope}/order/{job.replace('%', '%25')}"
    return next((received.data["JobOrder"] for received in list(mes.client.received) if received.topic == topic), None)


def test_code_is_compared_with_the_serial_number_of_the_order(mes: Mes, readers: Readers) -> None:
    """The recipe and the order are those of the reference, from the MES to the condition."""
    section = SFC.read_text().partition("### Order parameters and scanned codes")[2]
    recipe, call = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL)[:2])
    mes.configure("WM-SCAN", recipe)
    for job, code, verdict in (("J-7", "VIN-7", "ok"), ("J-8", "VIN-8", "not_ok")):
        call["JobOrder"]["JobOrderID"] = job
        assert mes.call("StoreAndStart", call).status == 1
        mes.wait_for_state(job, "Running", DEADLINE)
        readers.scan(code)
        mes.wait_for_state(job, "Ended", DEADLINE)
        wait_for(partial(mes.result, job), f"the result of {job}", DEADLINE)
        entries = {entry["ID"]: entry for entry in mes.result(job)["JobResponseData"]}
        assert entries["Verdict"]["Value"] == verdict
        assert {part["ID"]: part["Value"] for part in entries["Recipe"]["Subparameters"]}["Revision"] == 1
