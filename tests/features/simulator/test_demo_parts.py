"""Tests of the parts of every scene: the deadline, failures, and waiting for a condition."""

import asyncio
import socket
import sys
import tomllib
from pathlib import Path

import pytest

from edge.access.users import read_users
from edge.config import SECTIONS, Settings, load_settings
from edge.features.page.settings import WebSettings
from edge.features.simulator.demo_parts import (
    NAME,
    DemoPage,
    OpcuaAddress,
    edge_command,
    limit_demo,
    page_section,
    scene_settings,
    wait_until,
)
from edge.foundation.errors import Unavailable
from edge.model.user import Role


async def test_first_failure_of_a_part_ends_the_demo() -> None:
    async def fail_twice() -> None:
        async with limit_demo() as limit:
            limit.give_up(Unavailable("the broker ended"))
            limit.give_up(Unavailable("the gateway ended"))
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match="the broker ended"):
        await fail_twice()


async def test_finished_demo_has_no_time_limit() -> None:
    async with limit_demo() as limit:
        limit.lift()
        assert limit.failure is None


async def test_wait_returns_whether_the_condition_became_true() -> None:
    async def is_true() -> bool:
        return True

    assert await wait_until(lambda: True, 1)
    assert await wait_until(is_true, 1)
    assert not await wait_until(lambda: False, 0.01)


def test_scene_ignores_the_station_files_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(scene_settings(tmp_path, "mqtt://127.0.0.1:1", "station-1", ""))
    assert not load_settings(file, {}, SECTIONS).station.files


def test_command_line_runs_this_interpreter() -> None:
    assert edge_command("run") == (sys.executable, "-P", "-m", "edge", "run")


def test_server_on_all_interfaces_has_a_local_and_a_remote_address() -> None:
    address = OpcuaAddress("0.0.0.0", 4840)  # noqa: S104 - the address of a user
    assert (address.endpoint, address.local) == ("opc.tcp://0.0.0.0:4840", "opc.tcp://127.0.0.1:4840")
    host = address.remote.removeprefix("opc.tcp://").removesuffix(":4840")
    assert host not in {"0.0.0.0", ""}  # noqa: S104 - nothing listens


def test_port_in_use_is_reported_before_any_part_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=rf"127\.0\.0\.1:{port}.*in use"):
            OpcuaAddress(port=port).with_free_port()
    assert OpcuaAddress().with_free_port().port


def test_page_has_settings_and_a_user(tmp_path: Path) -> None:
    page, other = DemoPage(), DemoPage()
    assert page.password != other.password
    file = tmp_path / 'a "people" file'
    found = tomllib.loads(page.section(file))
    settings = WebSettings(**found["web"])
    assert (settings.address, list(settings.conflicts(Settings()))) == (("127.0.0.1", page.port), [])
    assert read_users(Path(found["users"]["file"]))[NAME].role is Role.ENGINEER
    assert page.address == f"http://localhost:{page.port}/"


def test_scene_without_a_page_has_no_web_settings(tmp_path: Path) -> None:
    assert page_section(None, tmp_path) == ""
    assert "[web]" in page_section(DemoPage(), tmp_path)
