"""The unit of the second Redis starts by the exit status."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from edge.cli import main


@pytest.mark.parametrize(("keep", "status", "place"), [("volatile", 0, "in memory"), ("durable", 1, "in the store")])
def test_exit_status_is_zero_where_samples_are_in_memory(tmp_path: Path, keep: str, status: int, place: str) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(f'[telemetry]\nkeep = "{keep}"\n')
    answer = CliRunner().invoke(main, ["hw", "volatile", "--settings", str(file)])
    assert (answer.exit_code, answer.output) == (status, f"samples are kept {place}\n")
