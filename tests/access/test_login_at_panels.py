"""PIN and badge: right ones name a person, wrong ones wait, and neither is a way around a second factor."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.access.login import FREE_OF_ADDRESS, LoginRefusal, PanelUser, Users
from edge.access.password_hash import hash_badge, hash_like, hash_password, head_of, is_password
from edge.access.users import User, read_users, write_user
from edge.model.user import Role
from tests.access.test_users import Clock
from tests.passwords import CHEAP_HASH

PANEL, OTHER = "192.0.2.1", "192.0.2.2"
BADGE, NEW_BADGE = "04A1B2C3D4", "04A1B2C3D5"
PIN = "2580"
HEAD = head_of(CHEAP_HASH)
ANNA = User("anna", Role.OPERATOR, CHEAP_HASH, pin=hash_like(PIN, HEAD), badge=hash_like(BADGE, HEAD))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    write_user(path, ANNA)
    write_user(path, User("ben", Role.ENGINEER, CHEAP_HASH, badge=hash_badge(NEW_BADGE, [ANNA.badge])))
    return path


async def test_pin_and_badge_name_a_person_with_the_role(file: Path) -> None:
    assert read_users(file)["anna"] == ANNA
    users = Users(file)
    assert users.names_with_pin() == ("anna",)
    assert await users.log_in_with_pin("anna", PIN, PANEL) == PanelUser("anna", Role.OPERATOR)
    assert await users.log_in_with_badge(BADGE, PANEL) == PanelUser("anna", Role.OPERATOR)
    assert await users.log_in_with_badge(NEW_BADGE, PANEL) == PanelUser("ben", Role.ENGINEER)
    for name, pin in (("anna", "2581"), ("ben", PIN), ("ben", ""), ("none", PIN), ("anna", "2" * 99), ("a:b", PIN)):
        assert await users.log_in_with_pin(name, pin, PANEL) in {LoginRefusal.WRONG_PIN, LoginRefusal.TOO_SOON}
    for code in ("04A1B2C3D6", "", PIN, "x" * 999):
        assert await users.log_in_with_badge(code, PANEL) is LoginRefusal.UNKNOWN_BADGE


async def test_wrong_pins_of_a_user_wait_at_every_panel(file: Path) -> None:
    clock = Clock()
    users = Users(file, clock)
    for number in range(5):
        refusal = await users.log_in_with_pin("anna", "0000", f"198.51.100.{number}")
        assert refusal is LoginRefusal.WRONG_PIN
    assert await users.log_in_with_pin("anna", PIN, OTHER) is LoginRefusal.TOO_SOON
    assert users.panel_wait_s("anna", OTHER) == 1
    clock.now += 1
    assert await users.log_in_with_pin("anna", "0000", OTHER) is LoginRefusal.WRONG_PIN
    assert users.panel_wait_s("anna", OTHER) == 2
    clock.now += 2
    assert await users.log_in_with_pin("anna", PIN, OTHER) == PanelUser("anna", Role.OPERATOR)
    assert users.panel_wait_s("anna", OTHER) == 0


async def test_panel_with_wrong_badges_waits_with_badges_alone(file: Path) -> None:
    users = Users(file, Clock())
    for _ in range(FREE_OF_ADDRESS):
        await users.log_in_with_badge("04A1B2C3D6", PANEL)
    assert await users.log_in_with_badge(BADGE, PANEL) is LoginRefusal.TOO_SOON
    assert users.panel_wait_s("", PANEL) == 1
    assert await users.log_in_with_badge(BADGE, OTHER) == PanelUser("anna", Role.OPERATOR)
    assert await users.log_in_with_pin("anna", PIN, PANEL) == PanelUser("anna", Role.OPERATOR)


async def test_code_of_a_badge_differs_from_another_code(file: Path) -> None:
    users = Users(file, Clock())
    codes = (BADGE, NEW_BADGE, "04A1B2C3D6", "", "x" * 999)
    assert [await users.has_badge(code) for code in codes] == [True, True, False, False, False]
    assert users.panel_wait_s("", PANEL) == 0


async def test_codes_tried_for_a_badge_wait_as_badges_and_apart(file: Path) -> None:
    clock = Clock()
    users = Users(file, clock)
    assert await users.recognizes_badge(BADGE, PANEL)
    for _ in range(FREE_OF_ADDRESS):
        assert not await users.recognizes_badge("04A1B2C3D6", PANEL)
    assert not await users.recognizes_badge(BADGE, PANEL)
    assert await users.recognizes_badge(BADGE, OTHER)
    assert await users.log_in_with_badge(BADGE, PANEL) == PanelUser("anna", Role.OPERATOR)
    clock.now += 1
    assert await users.recognizes_badge(BADGE, PANEL)


async def test_second_factor_is_not_replaced_by_pin_or_badge(file: Path) -> None:
    users = Users(file, totp_roles=(Role.ENGINEER,))
    assert await users.log_in_with_badge(NEW_BADGE, PANEL) is LoginRefusal.CODE_NEEDED
    write_user(file, replace(ANNA, totp="JBSWY3DPEHPK3PXP"))
    assert await users.log_in_with_pin("anna", PIN, PANEL) is LoginRefusal.CODE_NEEDED


def test_badges_share_a_salt_and_cost_as_much_as_passwords() -> None:
    first = hash_badge(BADGE, [])
    second = hash_badge(NEW_BADGE, ["", first])
    assert head_of(first) == head_of(second)
    assert is_password(NEW_BADGE, second)
    assert head_of(first).rpartition("$")[0] == head_of(hash_password("x")).rpartition("$")[0]
    assert hash_like(BADGE, "damaged") == ""
