"""A gateway's store and settings, and the commands that visit them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from edge.cli import main
from edge.config import RedisSettings
from edge.foundation.instant import now_ms
from edge.store.client import Store
from tests.cli.calling import PASSWORD, Add, Edge, Offline
from tests.free_ports import free_port
from tests.station.plant import LINEAR, PHOTO, TIGHTEN, FakeEquipment, Plant


@pytest.fixture
def settings_file(tmp_path: Path, redis: RedisSettings) -> Path:
    """Settings that name the store of this test."""
    file = tmp_path / "edge.toml"
    file.write_text(f'[redis]\nurl = "{redis.url}"\nprefix = "{redis.prefix}"\n')
    return file


@pytest.fixture
def edge(settings_file: Path) -> Edge:
    """How to call `edge` on that store while a gateway may work on it."""

    async def call(*arguments: object, given: str | None = None) -> Result:
        command = [*map(str, arguments), "--settings", str(settings_file)]
        return await asyncio.to_thread(CliRunner().invoke, main, command, given)

    return call


@pytest.fixture
def offline(tmp_path: Path) -> Offline:
    """How to call `edge` where no store answers."""
    file = tmp_path / "offline.toml"
    file.write_text(f'[redis]\nurl = "redis://127.0.0.1:{free_port()}"\n')

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, [*map(str, arguments), "--settings", str(file)])

    return call


@pytest.fixture
def users_file(settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings that require a login, and the file of users."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "users"
    with settings_file.open("a") as settings:
        settings.write(f'[users]\nfile = "{file}"\ncli = "login"\n')
    return file


@pytest.fixture
def add(edge: Edge, users_file: Path) -> Add:
    """How to add a user."""

    async def call(name: str, role: str) -> None:
        answer = await edge("users", "add", name, "--role", role, "--password-stdin", given=f"{PASSWORD}\n")
        assert answer.exit_code == 0, answer.output

    assert users_file.parent.is_dir()
    return call


@pytest.fixture
def tool() -> FakeEquipment:
    """Equipment that takes every command of the test recipes and answers when the test says so."""
    return FakeEquipment()


@pytest_asyncio.fixture
async def plant(store: Store, tool: FakeEquipment) -> AsyncIterator[Plant]:
    """A station that knows the work master `linear` and does not work yet."""
    station = Plant(store, {TIGHTEN: tool, PHOTO: tool}, now_ms)
    await station.teach("linear", LINEAR)
    yield station
