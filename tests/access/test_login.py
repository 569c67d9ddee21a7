"""The second factor: required once it is configured, each code is valid once, failures survive a restart."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pyotp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.access.login import FREE_LOGINS, Credentials, LoginRefusal, StoredMemory, Users, source_of
from edge.access.users import (
    Token,
    User,
    digest,
    new_recovery_codes,
    new_secret,
    new_token,
    read_users,
    remove_user,
    write_user,
)
from edge.config import RedisSettings
from edge.foundation.rate_limit import FailureThrottle
from edge.model.user import Role
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.passwords import CHEAP_HASH, PASSWORD
from tests.store.servers import own_server

HERE = "192.0.2.1"
SECRET = new_secret()
CODES = new_recovery_codes()
NOW = 1_800_000_000.0


def code_at(at_s: float) -> str:
    return pyotp.TOTP(SECRET).at(int(at_s))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    write_user(path, User("anna", Role.ENGINEER, CHEAP_HASH, SECRET, tuple(map(digest, CODES))))
    write_user(path, User("ben", Role.OPERATOR, CHEAP_HASH))
    return path


class People:
    """Logs in as a client does."""

    def __init__(self, file: Path, store: Store | None = None, totp_roles: Sequence[Role] = ()) -> None:
        self.now = NOW
        self.steady = 0.0
        memory = StoredMemory(store) if store else None
        self.users = Users(file, lambda: self.steady, lambda: self.now, memory, totp_roles)

    async def log_in(
        self, name: str, secret: str, *, is_confirmed: bool = False, address: str = HERE
    ) -> Role | LoginRefusal:
        return await self.users.log_in(Credentials(name, secret, address, is_confirmed))


async def test_user_with_second_factor_needs_password_and_code(file: Path) -> None:
    people = People(file)
    assert await people.log_in("anna", PASSWORD) is LoginRefusal.WRONG_CODE
    assert await people.log_in("anna", f"wrong{code_at(NOW)}") is LoginRefusal.WRONG
    assert await people.log_in("anna", PASSWORD + code_at(NOW)) is Role.ENGINEER


async def test_used_code_and_older_codes_are_refused(file: Path, store: Store) -> None:
    people = People(file, store)
    assert await people.log_in("anna", PASSWORD + code_at(NOW)) is Role.ENGINEER
    assert await people.log_in("anna", PASSWORD + code_at(NOW)) is LoginRefusal.USED_CODE
    assert await people.log_in("anna", PASSWORD + code_at(NOW - 30)) is LoginRefusal.USED_CODE
    # Another gateway on this store, or this one after a restart.
    again = People(file, store)
    again.steady = 1000.0
    assert await again.log_in("anna", PASSWORD + code_at(NOW)) is LoginRefusal.USED_CODE


@pytest.mark.parametrize(("off_s", "accepted"), [(-61, False), (-30, True), (0, True), (30, True), (61, False)])
async def test_code_with_a_clock_offset_of_one_step_is_accepted(file: Path, off_s: int, accepted: bool) -> None:  # noqa: FBT001 - a parameter
    found = await People(file).log_in("anna", PASSWORD + code_at(NOW + off_s))
    assert found is (Role.ENGINEER if accepted else LoginRefusal.WRONG_CODE)


async def test_recovery_code_is_valid_once_also_after_a_restart(file: Path, store: Store) -> None:
    assert await People(file, store).log_in("anna", PASSWORD + CODES[0]) is Role.ENGINEER
    people = People(file, store)
    assert await people.log_in("anna", PASSWORD + CODES[0]) is LoginRefusal.USED_CODE
    assert await people.log_in("anna", PASSWORD + CODES[1]) is Role.ENGINEER


async def test_role_that_requires_a_second_factor_refuses_a_user_without(file: Path) -> None:
    people = People(file, totp_roles=[Role.OPERATOR])
    assert await people.log_in("ben", PASSWORD) is LoginRefusal.NO_SECOND_FACTOR
    assert await People(file).log_in("ben", PASSWORD) is Role.OPERATOR


async def test_confirmed_session_accepts_its_code_but_no_wrong_password(file: Path) -> None:
    people = People(file)
    secret = PASSWORD + code_at(NOW)
    assert await people.log_in("anna", secret) is Role.ENGINEER
    people.now += 3600
    assert await people.log_in("anna", secret, is_confirmed=True) is Role.ENGINEER
    assert await people.log_in("anna", f"wrong{code_at(NOW)}", is_confirmed=True) is LoginRefusal.WRONG


async def test_token_logs_in_without_code_until_it_expires(file: Path) -> None:
    secret = new_token()
    write_user(file, User("scada", Role.OPERATOR, CHEAP_HASH, tokens=(Token("t1", "20270115", digest(secret)),)))
    people = People(file, totp_roles=[Role.OPERATOR])
    assert await people.log_in("scada", secret) is Role.OPERATOR
    assert await people.log_in("scada", secret + "x") is LoginRefusal.WRONG
    people.now += 24 * 3600 * 2
    assert await people.log_in("scada", secret) is LoginRefusal.WRONG


async def test_wrong_codes_are_throttled_across_a_restart(file: Path, store: Store) -> None:
    people = People(file, store)
    for _ in range(FREE_LOGINS):
        assert await people.log_in("anna", f"{PASSWORD}000000") is LoginRefusal.WRONG_CODE
    assert await people.log_in("anna", PASSWORD + code_at(NOW)) is LoginRefusal.TOO_SOON
    for _ in range(6):  # the store counts real time: a wait of a minute outlasts a busy machine
        people.steady += 100
        assert await people.log_in("anna", f"{PASSWORD}000000") is LoginRefusal.WRONG_CODE
    restarted = People(file, store)
    assert await restarted.log_in("anna", PASSWORD + code_at(NOW)) is LoginRefusal.TOO_SOON
    restarted.steady = 100
    assert await restarted.log_in("anna", PASSWORD + code_at(NOW)) is Role.ENGINEER
    # The success resets the failures in the store, too.
    assert await People(file, store).log_in("anna", f"{PASSWORD}000000") is LoginRefusal.WRONG_CODE
    assert await People(file, store).log_in("anna", PASSWORD + CODES[2]) is Role.ENGINEER


async def test_wrong_codes_from_many_addresses_are_throttled_after_a_restart(file: Path, store: Store) -> None:
    people = People(file, store)
    wrong = "000000" if code_at(NOW) != "000000" else "000001"
    found = [await people.log_in("anna", PASSWORD + wrong, address=f"192.0.2.{number}") for number in range(1, 13)]
    assert found == [LoginRefusal.WRONG_CODE] * 10 + [LoginRefusal.CODE_TOO_SOON] * 2
    for index in range(6):  # the store counts real time: a wait of a minute outlasts a busy machine
        people.steady += 100
        code = await people.log_in("anna", PASSWORD + wrong, address=f"192.0.3.{index}")
        assert code is LoginRefusal.WRONG_CODE
    people = People(file, store)
    assert await people.log_in("anna", PASSWORD + code_at(NOW), address="198.51.100.1") is LoginRefusal.CODE_TOO_SOON
    # A recovery code cannot be guessed.
    assert await people.log_in("anna", PASSWORD + CODES[0], address="198.51.100.2") is Role.ENGINEER
    people.steady += FailureThrottle.LONGEST_S
    assert await people.log_in("anna", PASSWORD + code_at(NOW), address="198.51.100.1") is Role.ENGINEER
    assert await people.log_in("anna", PASSWORD + wrong, address="198.51.100.3") is LoginRefusal.WRONG_CODE


async def test_wrong_passwords_from_many_addresses_do_not_delay_the_right_code(file: Path, store: Store) -> None:
    people = People(file, store)
    for item in range(1, 13):
        assert await people.log_in("anna", f"guess{item:06}", address=f"192.0.2.{item}") is LoginRefusal.WRONG
    assert await people.log_in("anna", PASSWORD + code_at(NOW), address="198.51.100.1") is Role.ENGINEER


async def test_codes_are_refused_and_failures_counted_without_the_store(file: Path, tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    async with own_server(tmp_path / "redis") as server, open_store(RedisSettings(url=server.url), "gw-1") as store:
        people = People(file, store)
        await server.kill()
        assert await people.log_in("anna", PASSWORD + code_at(NOW)) is LoginRefusal.UNCHECKED_CODE
        assert await people.log_in("ben", PASSWORD) is Role.OPERATOR
        for _ in range(FREE_LOGINS):
            await people.log_in("ben", "wrong")
        assert await people.log_in("ben", PASSWORD) is LoginRefusal.TOO_SOON


_NAMES = st.from_regex(r"[a-z][a-z .@-]{0,20}[a-z]", fullmatch=True)
_TOKENS = st.builds(
    Token,
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
    st.dates().map(lambda day: day.strftime("%Y%m%d").zfill(8)),
    st.just(digest("x")),
)
_USERS = st.builds(
    User,
    _NAMES,
    st.sampled_from(Role),
    st.just(CHEAP_HASH),
    st.sampled_from(["", SECRET]),
    st.lists(st.sampled_from([digest(code) for code in CODES]), unique=True).map(tuple),
    st.lists(_TOKENS, max_size=3).map(tuple),
)


@given(st.lists(_USERS, unique_by=lambda user: user.name, max_size=5))
def test_users_are_unchanged_after_write_and_read(tmp_path_factory: pytest.TempPathFactory, users: list[User]) -> None:
    path = tmp_path_factory.mktemp("users") / "users"
    for user in users:
        write_user(path, user)
    assert read_users(path) == {user.name: user for user in users}
    for user in users:
        remove_user(path, user.name)
    assert read_users(path) == {}


@pytest.mark.parametrize("rest", ["totp=short", "recovery=abc", "token=a.b", "pin=1234", "totp"])
def test_user_with_an_unreadable_second_factor_cannot_log_in(tmp_path: Path, rest: str) -> None:
    """A damaged second factor must not become a login without one."""
    path = tmp_path / "users"
    path.write_text(f"anna:engineer:{CHEAP_HASH}:{rest}\n")
    assert read_users(path) == {}


@pytest.mark.parametrize(
    ("address", "other", "is_one"),
    [
        ("127.0.0.1", "127.3.2.1", True),
        ("127.0.0.1", "::1", True),
        ("::ffff:127.9.9.9", "::1", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1:2:3", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("cli anna", "cli ben", False),
    ],
)
def test_failures_are_counted_for_all_addresses_of_a_host(address: str, other: str, is_one: bool) -> None:  # noqa: FBT001 - a parameter
    assert (source_of(address) == source_of(other)) is is_one


async def test_guesses_from_other_loopback_addresses_are_throttled(file: Path, store: Store) -> None:
    users = Users(file, lambda: 0.0, lambda: NOW, StoredMemory(store))
    for number in range(FREE_LOGINS):
        assert await users.log_in(Credentials("ben", "guess", f"127.0.0.{number + 1}")) is LoginRefusal.WRONG
    assert await users.log_in(Credentials("ben", PASSWORD, "127.0.1.1")) is LoginRefusal.TOO_SOON


@pytest.mark.parametrize(("name", "secret"), [("a" * 65, "x"), ("a\nb", "x"), ("", "x"), ("ben", "\udcff")])
async def test_malformed_user_name_or_password_is_refused(file: Path, name: str, secret: str) -> None:
    """A failure is kept with its name: names of a megabyte would fill the memory."""
    assert await People(file).log_in(name, secret) is LoginRefusal.WRONG


async def test_user_certificate_failures_are_counted_like_passwords(file: Path) -> None:
    people = People(file, totp_roles=[Role.ENGINEER])
    users = people.users
    assert await users.log_in_certified("ben", HERE, "") is Role.OPERATOR
    assert await users.log_in_certified("anna", HERE, "") == LoginRefusal.NO_SECOND_FACTOR
    assert await users.log_in_certified("nobody", HERE, "") == LoginRefusal.NO_USER
    assert await users.log_in_certified("bad:name", HERE, "") == LoginRefusal.NO_USER
    for _ in range(FREE_LOGINS):
        assert await users.log_in_certified("ben", HERE, "revoked") == "revoked"
    assert await users.log_in_certified("ben", HERE, "") == LoginRefusal.TOO_SOON
    assert await people.log_in("ben", PASSWORD) is LoginRefusal.TOO_SOON
    people.steady += 2
    assert await users.log_in_certified("ben", HERE, "") is Role.OPERATOR
    assert await people.log_in("ben", PASSWORD) is Role.OPERATOR


async def test_wrong_codes_are_counted_for_all_gateways_of_a_store(file: Path, store: Store) -> None:
    """Each gateway counted those that it had seen: an attacker had three times the guesses at three gateways."""
    gateways = [People(file, store) for _ in range(3)]
    found = [
        await gateways[number % 3].log_in("anna", PASSWORD + f"{number:06}", address=f"192.0.2.{number}")
        for number in range(11)
    ]
    assert found == [*[LoginRefusal.WRONG_CODE] * 10, LoginRefusal.CODE_TOO_SOON]


async def test_concurrent_failures_at_two_gateways_are_both_counted(file: Path, store: Store) -> None:
    gateways = [People(file, store) for _ in range(2)]
    await asyncio.gather(*(gateway.log_in("ben", "guess") for gateway in gateways))
    assert await gateways[0].log_in("ben", "guess") is LoginRefusal.WRONG
    assert await gateways[1].log_in("ben", PASSWORD) is LoginRefusal.TOO_SOON


async def test_success_at_one_gateway_clears_the_failures_at_the_others(file: Path, store: Store) -> None:
    first, second = People(file, store), People(file, store)
    for _ in range(FREE_LOGINS - 1):
        await first.log_in("ben", "guess")
    assert await second.log_in("ben", PASSWORD) is Role.OPERATOR
    assert await first.log_in("ben", "guess") is LoginRefusal.WRONG
    assert await first.log_in("ben", PASSWORD) is Role.OPERATOR
