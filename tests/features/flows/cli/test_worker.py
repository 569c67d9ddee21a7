"""`edge worker` requires at least one valid node kind."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from edge.cli import main
from edge.config import RedisSettings
from edge.features.flows.cli.worker import worker


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (None, "there is no node kind to run"),
        ("KIND = 5", "KIND is a NodeKind"),
        # Its crash stops neither the command nor the others.
        ("import os\nos.abort()", "its import ended the process (SIGABRT)"),
    ],
)
def test_worker_without_a_usable_kind_is_refused(tmp_path: Path, kind: str | None, reason: str) -> None:
    settings = tmp_path / "edge.toml"
    settings.write_text("" if kind is None else f'[flows]\nnodes = "{tmp_path}"\n')
    if kind is not None:
        (tmp_path / "a.py").write_text(kind)
    result = CliRunner().invoke(main, ["worker", "--settings", str(settings)])
    assert result.exit_code == 2
    assert reason in result.stderr


def test_systemd_unit_calls_the_worker_with_known_options() -> None:
    unit = (Path(__file__).parents[4] / "systemd" / "microdcs-edge-worker@.service").read_text(encoding="utf-8")
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    program, command, *options = line.removeprefix("ExecStart=").split()
    assert (program, command) == ("/usr/bin/microdcs-edge", "worker")
    context = worker.make_context("worker", options)
    assert context.params["name"] == "%H-%i"
    grace = context.params["grace"]
    (stop,) = [line for line in unit.splitlines() if line.startswith("TimeoutStopSec=")]
    assert int(stop.split("=")[1]) > grace


def test_store_without_workers_has_an_empty_list(redis: RedisSettings, tmp_path: Path) -> None:
    settings = tmp_path / "edge.toml"
    settings.write_text(f'[redis]\nurl = "{redis.url}"\nprefix = "{redis.prefix}"\n')
    result = CliRunner().invoke(main, ["worker", "list", "--settings", str(settings)])
    assert (result.exit_code, result.stdout) == (0, "no workers\n")
    result = CliRunner().invoke(main, ["worker", "list", "--json", "--settings", str(settings)])
    assert result.stdout.split() == ["[]"]
