"""`edge support-bundle` as people call it."""

from pathlib import Path

import pytest

from edge.maintenance import support
from edge.maintenance.archive import read_members
from tests.cli.calling import Edge


async def test_it_states_what_it_does_and_to_look_first(
    edge: Edge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def programs(since: str) -> list[tuple[str, tuple[str, ...]]]:
        asked.append(since)
        return []

    monkeypatch.setattr(support, "programs", programs)
    answer = await edge("support-bundle", tmp_path / "s.tar.gz", "--since", "-1h")
    assert answer.exit_code == 0
    assert answer.output.endswith("review the file before you pass it on\n")
    assert asked == ["-1h"]
    assert {"README.txt", "doctor.json", "settings.json", "store.json"} <= read_members(tmp_path / "s.tar.gz").keys()
