"""`edge doctor` reports the health of a gateway as text and JSON within its time limit."""

import json
from pathlib import Path

import pytest

from edge.features.admin.archive import read_members
from edge.model.finding import Level
from tests.cli.calling import Edge


async def test_a_real_gateway_is_examined(edge: Edge) -> None:
    answer = await edge("doctor", "--json")
    reported = json.loads(answer.output)
    assert {"settings", "store", "clock", "versions"} <= {finding["subject"] for finding in reported["findings"]}
    assert reported["level"] in set(Level)
    assert answer.exit_code == list(Level).index(Level(reported["level"]))


async def test_support_bundle_advises_to_review_the_file(
    edge: Edge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "asked"
    for name in ("journalctl", "systemctl", "timedatectl", "df"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "$@" >>{path}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    answer = await edge("support-bundle", tmp_path / "s.tar.gz", "--since", "-1h")
    assert answer.exit_code == 0
    assert answer.output.endswith("review the file before you pass it on\n")
    assert "--since=-1h" in path.read_text()
    assert {"README.txt", "doctor.json", "settings.json", "store.json"} <= read_members(tmp_path / "s.tar.gz").keys()
