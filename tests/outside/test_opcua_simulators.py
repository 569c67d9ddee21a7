"""The simulated OPC UA devices answer a client of another vendor as the standard says."""

from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.servers import EDGE, Server, accepts

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "device"), [("ijt", "/Machines/"), ("vision", "/camera/")])
def test_simulator_names_the_wrong_number_of_arguments(tmp_path: Path, kind: str, device: str) -> None:
    """It failed with an unexpected error and a traceback."""
    port = free_port()
    simulator = Server(tmp_path)
    try:
        simulator.launch([EDGE, "sim", kind, "--port", str(port)], lambda: accepts(port))
        with opcua_client(port, "tree") as client:
            found = read_line(client)
    finally:
        simulator.kill()
    wrong = [(path, few, many) for path, _count, few, many in found["wrong"] if device in path]
    assert wrong == []
    assert "Traceback" not in simulator.log.read_text()
