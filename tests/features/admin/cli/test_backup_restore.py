"""`edge restore` called from the command line."""

from pathlib import Path

from edge.store.client import Store
from tests.cli.calling import Edge


async def test_restore_reports_restored_files_and_store(edge: Edge, store: Store, tmp_path: Path) -> None:
    await store.execute("SET", store.keys.counter("x"), "1")
    await edge("backup", tmp_path / "b.tar.gz")
    await store.execute("SET", store.keys.counter("x"), "2")
    answer = await edge("restore", tmp_path / "b.tar.gz")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert f"restored: {tmp_path}/edge.toml" in answer.output
    assert await store.execute("GET", store.keys.counter("x")) == "1"


async def test_check_of_a_backup_changes_nothing(edge: Edge, store: Store, tmp_path: Path) -> None:
    await edge("backup", tmp_path / "b.tar.gz")
    await store.execute("SET", store.keys.counter("x"), "2")
    await store.execute("SADD", store.keys.sfc_active_jobs(), "J1")
    answer = await edge("restore", "--check", tmp_path / "b.tar.gz")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "restored:" not in answer.output
    assert await store.execute("GET", store.keys.counter("x")) == "2"
    (tmp_path / "b.tar.gz").write_text("no backup")
    assert (await edge("restore", "--check", tmp_path / "b.tar.gz")).exit_code == 1


async def test_restore_over_running_jobs_requires_force(edge: Edge, store: Store, tmp_path: Path) -> None:
    await edge("backup", tmp_path / "b.tar.gz")
    await store.execute("SADD", store.keys.sfc_active_jobs(), "J1")
    answer = await edge("restore", tmp_path / "b.tar.gz")
    assert answer.exit_code == 1
    assert "running jobs: J1" in answer.stderr
    assert (await edge("restore", tmp_path / "b.tar.gz", "--force")).exit_code == 0


async def test_file_that_is_not_a_backup_is_refused(edge: Edge, tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").write_text("no backup")
    answer = await edge("restore", tmp_path / "b.tar.gz")
    assert answer.exit_code == 1
    assert "is not an archive" in answer.stderr
