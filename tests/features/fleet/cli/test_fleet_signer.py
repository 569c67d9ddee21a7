"""A signed command runs in the name of its signer, with or without logins."""

import json
from pathlib import Path

import pytest

from edge.access.components import Report
from edge.features.fleet.service import FleetExecutor
from edge.store.client import Store
from tests.cli.calling import Add, actions

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cli", ["login", "open"])
async def test_signed_command_runs_in_the_name_of_its_signer(
    add: Add, settings_file: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, cli: str
) -> None:
    await add("ben", "engineer")
    monkeypatch.setenv("EDGE_USERS__CLI", cli)

    async def describe() -> Report:
        raise AssertionError

    executor = FleetExecutor(describe, settings_file, tmp_path, store, "edge")
    shown = json.loads(await executor.execute("maintenance on", ("--now",), "anna"))
    assert shown["modes"]["*"]["by"].startswith("anna (")
    assert await store.execute("KEYS", store.keys.session("*")) in ([], set())
    assert ("maintenance on", "Good") in await actions(store)
