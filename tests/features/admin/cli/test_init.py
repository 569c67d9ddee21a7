"""`edge init` writes the settings of a site, checks them, and prints the next steps."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.config import MqttSettings
from edge.features.admin.cli.init import init

pytestmark = pytest.mark.slow


def call(*arguments: object) -> Result:
    return CliRunner().invoke(init, [*map(str, arguments)])


def test_arguments_become_settings_and_are_tried(tmp_path: Path, mqtt: MqttSettings) -> None:
    result = call(
        "--directory", tmp_path, "--name", "line-3", "--broker", mqtt.url, "--equipment", "w", "mqtt", "t.v1", "--json"
    )
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["file"] == str(tmp_path / "conf.d" / "50-site.toml")
    assert {finding["subject"]: finding["level"] for finding in shown["findings"]}["equipment w"] == "ok"
    assert shown["next"][0] == f"edge run --settings {tmp_path / 'edge.toml'}"


def test_settings_of_an_earlier_call_are_replaced_only_on_request(tmp_path: Path) -> None:
    assert call("--directory", tmp_path, "--name", "one", "--broker", "").exit_code == 0
    refused = call("--directory", tmp_path, "--name", "two", "--broker", "")
    assert (refused.exit_code, "--replace" in refused.stderr) == (2, True)
    assert call("--directory", tmp_path, "--name", "two", "--broker", "", "--replace").exit_code == 0
    assert '"two"' in (tmp_path / "conf.d" / "50-site.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--name", "line 3"), "gateway.name"),
        (("--broker", "http://broker"), "mqtt.url"),
        (("--equipment", "w", "opc.tcp://host", "t.v1"), "is not an address"),
        (("--equipment", "w", "robot+opc.tcp://host", "t.v1"), "robot"),
        (("--equipment", "w", "ijt+http://host", "t.v1"), "is not an address"),
        (("--equipment", "w", "mqtt", " , "), "type_ids"),
    ],
)
def test_invalid_answer_is_refused(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    result = call("--directory", tmp_path, *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert not (tmp_path / "conf.d" / "50-site.toml").exists()


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("--directory", tmp_path / "file" / "below", "--name", "x")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert str(tmp_path / "file") in result.output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_write_access_to_the_folder_is_checked_before_the_questions(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "edge", "init", "--directory", str(tmp_path / "site")]
    found = subprocess.run(command, stdin=theirs, capture_output=True, text=True, check=False, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (found.returncode, found.stdout) == (2, "")
    assert "call it as root" in found.stderr


def test_questions_are_asked_on_a_terminal(tmp_path: Path, mqtt: MqttSettings) -> None:
    answers = ["line 3", "line-3", "", "http://broker", mqtt.url, "", "wrench", "", "tighten.v1", ""]
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "edge", "init", "--directory", str(tmp_path)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        output = b""
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    output += os.read(ours, 4096)
                except OSError:
                    break
            if output.endswith(b": ") and answers:
                os.write(ours, f"{answers.pop(0)}\n".encode())
                output = b""
    os.close(ours)
    assert process.returncode == 0
    assert "edge doctor" in output.decode()
    assert "tighten.v1" in (tmp_path / "conf.d" / "50-site.toml").read_text()
