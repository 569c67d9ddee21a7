"""`edge fleet` shows the last report of each component and removes absent components."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from edge.cli import main
from edge.features.fleet import store as fleet
from edge.features.fleet.signature import FleetResult, FleetState
from edge.model.plant import Component, PluginState
from edge.store import components
from edge.store.client import Store
from tests.cli.calling import Edge, Offline
from tests.waiting import until_async


async def put(store: Store, id: str, *, seen_s: int, **others: object) -> None:
    component = Component(id=id, kind="gateway", version="1.2.3", started=1, **others)  # type: ignore[arg-type]
    plugin = PluginState(name="wrench", kind="equipment ijt", state="disconnected", problem="no route")
    keys = store.keys
    await store.commit(components.put(keys, component))
    await store.commit(components.put_plugins(keys, id, (plugin,)))
    await store.commit(components.touch(keys, id, seen_s))
    await store.commit(components.take(keys, id, "token"))


async def test_list_shows_healthy_degraded_and_absent_components(edge: Edge, store: Store) -> None:
    assert (await edge("fleet", "list")).output == "no components\n"
    now = int(time.time())
    await put(store, "gw-1", seen_s=now, jobs=2, alarms=1, certificate_expiry="2031-11-21", labels={"line": "3"})
    await put(store, "gw-2", seen_s=now, problems="broker unavailable: MES")
    await put(store, "gw-3", seen_s=now - 100)
    printed = (await edge("fleet", "list")).output
    assert "healthy" in printed
    assert "line=3" in printed
    listed = {load["id"]: load for load in json.loads((await edge("fleet", "list", "--json")).output)}
    assert [component["away"] for component in listed.values()] == [False, False, True]
    assert [component["problems"] for component in listed.values()] == ["", "broker unavailable: MES", ""]
    assert listed["gw-1"]["labels"] == {"line": "3"}


async def test_show_has_equipment_with_its_problem(edge: Edge, store: Store) -> None:
    await put(store, "gw-1", seen_s=int(time.time()), drift="2 rules differ", scopes=("station-1",), jobs=0)
    printed = (await edge("fleet", "show", "gw-1")).output
    assert "equipment ijt wrench: disconnected, no route" in printed
    assert "configuration drift: 2 rules differ" in printed
    assert "there is no component 'gw-9'" in (await edge("fleet", "show", "gw-9")).output


async def test_forgotten_components_leave_the_list(edge: Edge, store: Store) -> None:
    await put(store, "gw-1", seen_s=int(time.time()))
    assert (await edge("fleet", "forget")).exit_code == 2
    assert (await edge("fleet", "forget", "gw-1", "--after-days", "7")).exit_code == 0
    assert json.loads((await edge("fleet", "list", "--json")).output) == []
    assert (await components.load_settings(store))[components.REMOVE_AFTER] == str(7 * 86_400)


async def test_keys_are_created_accepted_listed_and_revoked(edge: Edge, settings_file: Path, tmp_path: Path) -> None:
    with settings_file.open("a") as settings:
        settings.write(f'[fleet]\nkeys = "{tmp_path / "keys"}"\n')
    key = tmp_path / "anna.pem"
    create = ["fleet", "keys", "create", "anna", str(key), "--password-stdin"]
    assert "less than 12 characters" in CliRunner().invoke(main, create, "short\n").output
    assert CliRunner().invoke(main, create, "a long password\n").exit_code == 0
    assert "exists" in CliRunner().invoke(main, create, "a long password\n").output
    assert (key.stat().st_mode & 0o077, b"ENCRYPTED" in key.read_bytes()) == (0, True)
    assert "no keys" in (await edge("fleet", "keys", "list")).output
    assert (await edge("fleet", "keys", "add", tmp_path / "anna.jwk")).exit_code == 0
    (listed,) = json.loads((await edge("fleet", "keys", "list", "--json")).output)
    assert (listed["name"], listed["revoked"]) == ("anna", False)
    assert "no key has an id" in (await edge("fleet", "keys", "revoke", "zz")).output
    assert (await edge("fleet", "keys", "revoke", listed["kid"][:6])).exit_code == 0
    assert "revoked" in (await edge("fleet", "keys", "list")).output
    again = await edge("fleet", "keys", "add", tmp_path / "anna.jwk")
    assert (again.exit_code, "was revoked" in again.output) == (1, True), "a repeated installation restores no key"
    assert "revoked" in (await edge("fleet", "keys", "list")).output


@pytest.mark.parametrize("content", ["", "{}", '{"kid": "1", "x": "AAAA"}'])
async def test_file_without_a_valid_public_key_is_refused(edge: Edge, tmp_path: Path, content: str) -> None:
    file = tmp_path / "anna.jwk"
    file.write_text(content)
    assert (await edge("fleet", "keys", "add", file)).exit_code == 1


async def test_send_refuses_unknown_commands_and_wrong_passwords(tmp_path: Path) -> None:
    key = tmp_path / "anna.pem"
    CliRunner().invoke(main, ["fleet", "keys", "create", "anna", str(key), "--password-stdin"], "a long password\n")

    async def send(*arguments: str, given: str = "a long password\n") -> str:
        command = ["fleet", "send", "--key", str(key), "--password-stdin", *arguments]
        return str((await asyncio.to_thread(CliRunner().invoke, main, command, given)).output)

    assert "components do not execute 'rm'" in await send("--all", "rm", "-rf", "/")
    misplaced = await send("--all", "doctor", "--settings", "x")
    assert "does not take '--settings' from the fleet. Options of `fleet send` stand before COMMAND." in misplaced
    assert "name components" in await send("status")
    assert "wrong password" in await send("--all", "status", given="guess\n")


@pytest.mark.parametrize("group", [("--all",), ("--label", "line=3")])
async def test_send_to_a_group_exits_1_when_a_gateway_does_not_answer(
    store: Store, settings_file: Path, tmp_path: Path, group: tuple[str, ...]
) -> None:
    with settings_file.open("a") as settings:
        settings.write('[fleet]\nlisten = "store"\n')
    key = tmp_path / "anna.pem"
    CliRunner().invoke(main, ["fleet", "keys", "create", "anna", str(key), "--password-stdin"], "a long password\n")
    for name in ("gw-1", "gw-2"):
        await put(store, name, seen_s=int(time.time()), labels={"line": "3"})
    await put(store, "gw-3", seen_s=int(time.time()), labels={"line": "4"})

    answered: set[str] = set()

    async def unanswered() -> set[str]:
        return set(await fleet.load_commands(store)) - answered

    async def answer(names: tuple[str, ...]) -> None:
        """Answer the next command as these components."""
        await until_async(unanswered)
        (id,) = await unanswered()
        for name in names:
            result = FleetResult(state=FleetState.SUCCESSFUL, at=1, component=name)
            await store.commit(fleet.put_result(store.keys, id, result))
        answered.add(id)

    command = ["fleet", "send", *group, "--key", str(key), "--password-stdin", "--wait", "2", "--json"]
    command += ["--settings", str(settings_file), "status"]
    for names, exit_code, missing in ((("gw-1",), 1, True), (("gw-1", "gw-2", "gw-3"), 0, False)):
        sent, _ = await asyncio.gather(
            asyncio.to_thread(CliRunner().invoke, main, command, "a long password\n"), answer(names)
        )
        assert sent.exit_code == exit_code, sent.output
        assert ("gw-2" in json.loads(sent.stdout)["missing"]) is missing


def test_text_without_a_signature_is_refused() -> None:
    command = [sys.executable, "-m", "edge", "fleet", "upgrade"]
    ran = subprocess.run(command, input="nonsense\n", capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode != 0
    # As root without the package the folder of its records is missing.
    assert "Traceback" not in ran.stderr
    if os.geteuid():
        assert "only root installs packages" in ran.stderr
    else:
        assert '"state":"refused"' in ran.stdout


async def test_a_command_without_results_is_a_sentence(edge: Edge) -> None:
    """It was a table without rows."""
    answer = await edge("fleet", "results", "0b8f5c6d", "--wait", "0")
    assert (answer.exit_code, answer.output) == (0, "no results of command 0b8f5c6d yet\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["forget"], "name a component or --after-days"),
        (["results", "a/b"], "is not an id of a command"),
        (["keys", "add", __file__], "no public key as JSON Web Key"),
    ],
)
def test_arguments_are_checked_before_the_store_is_opened(offline: Offline, arguments: list[str], reason: str) -> None:
    assert reason in offline("fleet", *arguments).output
