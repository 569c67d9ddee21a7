"""`edge opcua advertise` says what it did, and what is missing."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from edge.cli import main
from edge.features.opcua_extras.mdns_file import DIRECTORY

pytestmark = pytest.mark.skipif(DIRECTORY.exists(), reason="this machine has avahi-daemon")


def test_advertise_without_avahi_is_refused_with_advice(tmp_path: Path) -> None:
    settings = tmp_path / "edge.toml"
    settings.write_text('[opcua]\nadvertise = true\nendpoint = "opc.tcp://0.0.0.0:4840"\n')
    answer = CliRunner().invoke(main, ["opcua", "advertise", "--settings", str(settings)])
    assert (answer.exit_code, "edge: Install avahi-daemon." in answer.output) == (1, True)


def test_service_file_that_is_not_there_is_not_removed() -> None:
    answer = CliRunner().invoke(main, ["opcua", "advertise", "--remove"])
    assert (answer.exit_code, answer.output) == (0, "there is no service file\n")
