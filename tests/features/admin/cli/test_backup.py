"""`edge backup` called from the command line."""

from pathlib import Path

import pytest

from edge.features.admin.archive import read_archive
from edge.store.client import Store
from tests.cli.calling import Edge


@pytest.mark.parametrize(("options", "has_store"), [((), True), (("--without-store", "--with-key"), False)])
async def test_backup_reports_its_content(
    edge: Edge, store: Store, tmp_path: Path, options: tuple[str, ...], *, has_store: bool
) -> None:
    await store.execute("SET", store.keys.counter("x"), "1")
    answer = await edge("backup", tmp_path / "b.tar.gz", *options)
    assert answer.exit_code == 0
    assert ("store: " in answer.output) is has_store
    assert ("not saved: private keys" in answer.output) is has_store
    assert answer.output.endswith("readable by its owner only\n")
    assert ("store.jsonl" in read_archive(tmp_path / "b.tar.gz")[1]) is has_store
