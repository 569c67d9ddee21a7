"""`edge worker` needs something to run."""

from pathlib import Path

from click.testing import CliRunner

from edge.cli import main


def test_worker_without_a_kind_is_refused(tmp_path: Path) -> None:
    settings = tmp_path / "edge.toml"
    settings.write_text("")
    result = CliRunner().invoke(main, ["worker", "--settings", str(settings)])
    assert result.exit_code == 2
    assert "there is no node kind to run" in result.stderr


def test_faulty_kind_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("KIND = 5")
    settings = tmp_path / "edge.toml"
    settings.write_text(f'[flows]\nnodes = "{tmp_path}"\n')
    result = CliRunner().invoke(main, ["worker", "--settings", str(settings)])
    assert result.exit_code == 2
    assert "KIND is a NodeKind" in result.stderr
