"""`edge users` and `edge sessions`: changes, refusals, audit records, and the permissions of a login."""

import json
from pathlib import Path

import pyotp
import pytest

from edge.access.password_hash import head_of
from edge.access.users import read_users
from edge.cli.terminal.operator import role_for
from edge.model.user import Role
from edge.store.client import Store
from edge.uaserver import certificates
from tests.cli.calling import PASSWORD, Add, Edge, actions

pytestmark = pytest.mark.slow


async def test_users_are_added_changed_listed_and_removed(edge: Edge, add: Add, users_file: Path, store: Store) -> None:
    await add("anna", "operator")
    assert "there is a user anna" in (await edge("users", "add", "anna", "--role", "operator")).output
    assert (await edge("users", "role", "anna", "engineer")).exit_code == 0
    before = read_users(users_file)["anna"]
    assert (await edge("users", "passwd", "anna", "--password-stdin", given="battery staple\n")).exit_code == 0
    after = read_users(users_file)["anna"]
    assert (after.role, after.password_hash != before.password_hash) == (Role.ENGINEER, True)
    (listed,) = json.loads((await edge("users", "list", "--json")).output)
    assert (listed["name"], listed["role"], listed["second_factor"], listed["tokens"]) == ("anna", "engineer", False, 0)
    assert (await edge("users", "remove", "anna")).exit_code == 0
    assert read_users(users_file) == {}
    assert "no user 'anna'" in (await edge("users", "remove", "anna")).output
    assert [action for action, _ in await actions(store)] == ["users add", "users role", "users passwd", "users remove"]


async def test_second_factor_is_set_only_with_a_code_of_the_app(edge: Edge, add: Add, users_file: Path) -> None:
    await add("anna", "operator")
    wrong = await edge("users", "totp", "anna", given="12345\n")
    assert "nothing was changed" in wrong.output
    assert read_users(users_file)["anna"].totp == ""
    made = json.loads((await edge("users", "totp", "anna", "--json")).output)
    assert read_users(users_file)["anna"].totp == made["secret"]
    assert made["secret"] not in (await edge("users", "list")).output
    # The password command of OPC UA keeps the second factor.
    await edge("opcua", "password", "anna", "--role", "operator", "--password-stdin", given="battery staple\n")
    assert read_users(users_file)["anna"].totp == made["secret"]
    assert (await edge("users", "totp", "anna", "--off")).exit_code == 0
    assert read_users(users_file)["anna"].totp == ""


async def test_pin_and_badge_are_set_and_removed(edge: Edge, add: Add, users_file: Path, store: Store) -> None:
    await add("anna", "operator")
    await add("ben", "operator")
    for pin, fault in (("123", "four to eight"), ("12a4", "digits"), ("4321", "tried first"), ("7777", "tried first")):
        refused = await edge("users", "pin", "anna", "--pin-stdin", given=f"{pin}\n")
        assert fault.replace("four to eight", "4 to 8") in refused.output
    assert (await edge("users", "pin", "anna", "--pin-stdin", given="2580\n")).exit_code == 0
    assert (await edge("users", "badge", "anna", "--badge-stdin", given="04A1B2C3\n")).exit_code == 0
    assert "badge of anna" in (await edge("users", "badge", "ben", "--badge-stdin", given="04A1B2C3\n")).output
    assert (await edge("users", "badge", "ben", "--badge-stdin", given="04A1B2C4\n")).exit_code == 0
    assert read_users(users_file)["anna"].pin.startswith("$argon2id$")
    assert head_of(read_users(users_file)["anna"].badge) == head_of(read_users(users_file)["ben"].badge)
    listed = (await edge("users", "list")).output.splitlines()
    assert listed == ["anna  operator  PIN  badge", "ben  operator  badge"]
    assert (await edge("users", "totp", "ben", "--unconfirmed")).exit_code == 0
    assert "a way around" in (await edge("users", "pin", "ben", "--pin-stdin", given="2580\n")).output
    assert (await edge("users", "pin", "anna", "--off")).output.startswith("anna has no PIN")
    assert (await edge("users", "badge", "anna", "--off")).exit_code == 0
    assert not read_users(users_file)["anna"].pin + read_users(users_file)["anna"].badge
    assert "users pin --off" in [action for action, _ in await actions(store)]


async def test_changing_command_needs_a_login_with_its_role(edge: Edge, add: Add, store: Store) -> None:
    await add("ben", "operator")
    drop = ("dead-letters", "drop", "--all")
    assert "require a login" in (await edge(*drop)).output
    login = await edge("users", "login", "ben", "--password-stdin", given=f"{PASSWORD}\n")
    assert login.output == "logged in as ben, operator\n"
    assert "ben is operator; `edge dead-letters drop` needs the role engineer" in (await edge(*drop)).output
    await edge("users", "role", "ben", "engineer")
    assert "require a login" in (await edge(*drop)).output, "a change of the role ends the session"
    await edge("users", "login", "ben", "--password-stdin", given=f"{PASSWORD}\n")
    assert (await edge(*drop)).exit_code == 0
    (session,) = json.loads((await edge("sessions", "list", "--json")).output)
    assert (session["user"], session["way"]) == ("ben", "cli")
    assert (await edge("users", "logout")).output == "logged out\n"
    assert "require a login" in (await edge(*drop)).output
    refused = [status for action, status in await actions(store) if action == "dead-letters drop"]
    assert refused[-1].startswith("the settings require a login")
    assert "Good" in refused


async def test_new_password_and_new_second_factor_end_sessions(edge: Edge, add: Add) -> None:
    await add("anna", "engineer")
    for command, given in (
        (("users", "passwd", "anna", "--password-stdin"), f"{PASSWORD}\n"),
        (("users", "totp", "anna", "--unconfirmed"), None),
    ):
        assert (await edge("users", "login", "anna", "--password-stdin", given=f"{PASSWORD}\n")).exit_code == 0
        answer = await edge(*command, given=given)
        assert (answer.exit_code, "1 sessions ended" in answer.output) == (0, True), answer.output
        assert json.loads((await edge("sessions", "list", "--json")).output) == []


async def test_deletion_of_a_lock_by_the_gateway_requires_a_login(edge: Edge, add: Add, tmp_path: Path) -> None:
    await add("anna", "operator")
    url = f"unix://{tmp_path}/rpc.sock"
    refused = await edge("locks", "delete", "job", "--rpc", url)
    assert (refused.exit_code, "require a login" in refused.output) == (1, True)
    assert (await edge("users", "login", "anna", "--password-stdin", given=f"{PASSWORD}\n")).exit_code == 0
    assert "needs the role engineer" in (await edge("locks", "delete", "job", "--rpc", url)).output


async def test_session_id_of_the_list_is_not_accepted_as_a_login(edge: Edge, add: Add, tmp_path: Path) -> None:
    await add("ben", "engineer")
    await edge("users", "login", "ben", "--password-stdin", given=f"{PASSWORD}\n")
    (session,) = json.loads((await edge("sessions", "list", "--json")).output)
    (tmp_path / "state" / "microdcs-edge" / "session").write_text(session["id"])
    assert "require a login" in (await edge("dead-letters", "drop", "--all")).output


async def test_repeated_login_without_the_second_factor_is_throttled(edge: Edge, add: Add) -> None:
    await add("anna", "engineer")
    made = json.loads((await edge("users", "totp", "anna", "--json")).output)
    for _ in range(3):
        wrong = await edge("users", "login", "anna", "--password-stdin", given=f"{PASSWORD}\n")
        assert "wrong name, password or code" in wrong.output
    code = pyotp.TOTP(made["secret"]).now()
    # Each call is a process of its own: the store counts the failures.
    waiting = await edge("users", "login", "anna", "--password-stdin", given=f"{PASSWORD}{code}\n")
    assert "too many failed logins" in waiting.output


async def test_token_of_a_program_replaces_the_login(
    edge: Edge, add: Add, monkeypatch: pytest.MonkeyPatch, users_file: Path
) -> None:
    await add("robot", "engineer")
    made = json.loads((await edge("users", "token", "robot", "--json")).output)
    assert made["token"] not in users_file.read_text()  # noqa: ASYNC240 - a small file
    monkeypatch.setenv("EDGE_TOKEN", f"robot:{made['token']}")
    assert (await edge("dead-letters", "drop", "--all")).exit_code == 0
    assert (await edge("users", "token", "robot", "--revoke", made["id"])).exit_code == 0
    assert "wrong name, password or code" in (await edge("dead-letters", "drop", "--all")).output
    assert "has no token" in (await edge("users", "token", "robot", "--revoke", made["id"])).output


async def test_sessions_end_reports_an_unknown_session(edge: Edge, add: Add) -> None:
    await add("anna", "engineer")
    await edge("users", "login", "anna", "--password-stdin", given=f"{PASSWORD}\n")
    assert "there is no session 0123" in (await edge("sessions", "end", "0123")).output
    assert (await edge("sessions", "end", "--user", "anna")).output == "1 sessions end\n"
    assert json.loads((await edge("sessions", "list", "--json")).output) == []


def test_operators_control_jobs_and_engineers_change_the_station() -> None:
    assert role_for("jobs Abort") is role_for("alarms acknowledge") is Role.OPERATOR
    assert role_for("station set rules") is role_for("anything new") is Role.ENGINEER


async def test_password_command_of_opcua_is_recorded_and_ends_sessions(edge: Edge, add: Add, store: Store) -> None:
    await add("ben", "engineer")
    await edge("users", "login", "ben", "--password-stdin", given=f"{PASSWORD}\n")
    await edge("opcua", "password", "ben", "--role", "observer", "--password-stdin", given="battery staple\n")
    assert json.loads((await edge("sessions", "list", "--json")).output) == []
    assert ("opcua password", "Good") in await actions(store)


async def test_trust_in_an_application_is_recorded(
    edge: Edge, settings_file: Path, tmp_path: Path, store: Store
) -> None:
    with settings_file.open("a") as settings:
        settings.write(f'[opcua]\npki = "{tmp_path / "pki"}"\ntrusted = "{tmp_path / "trusted"}"\n')
    certificate = certificates.load_or_make(tmp_path / "scada", "urn:scada", ("here",)).certificate
    assert (await edge("opcua", "trust", tmp_path / "scada" / "own.der")).exit_code == 0
    assert (await edge("opcua", "reject", certificates.thumbprint(certificate)[:6])).exit_code == 0
    assert (await edge("opcua", "renew")).exit_code == 0
    assert await actions(store) == [("opcua trust", "Good"), ("opcua reject", "Good"), ("opcua renew", "Good")]


async def test_environment_variable_does_not_replace_the_login(
    edge: Edge, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add("ben", "engineer")
    monkeypatch.setenv("EDGE_FLEET_COMMAND", "1")
    monkeypatch.setenv("EDGE_FLEET_SESSION", "1")
    assert "require a login" in (await edge("dead-letters", "drop", "--all")).output
