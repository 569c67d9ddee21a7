"""Users log in with a password and get their role; guessing is throttled and does not reveal user names."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.access import users
from edge.access.login import (
    FREE_LOGINS,
    FREE_OF_ADDRESS,
    PASSWORD_BYTES,
    Credentials,
    LoginRefusal,
    Users,
    keys_of_login,
    login_throttle,
)
from edge.access.password_hash import hash_password
from edge.access.users import NAME, User, read_users, write_user
from edge.foundation.rate_limit import FailureThrottle
from edge.model.user import Role

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"
HASH = hash_password("correct horse")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "users"
    write_user(path, User("alice", Role.OPERATOR, HASH))
    return path


async def test_login_with_the_right_password_returns_the_role(file: Path) -> None:
    users = Users(file)
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is Role.OPERATOR
    assert await users.log_in(Credentials("alice", "battery staple", HERE)) is LoginRefusal.WRONG
    assert await users.log_in(Credentials("alice", "", HERE)) is LoginRefusal.WRONG
    assert await users.log_in(Credentials("Alice", "correct horse", HERE)) is LoginRefusal.WRONG


async def test_login_without_a_user_file_is_refused(tmp_path: Path) -> None:
    assert await Users(tmp_path / "none").log_in(Credentials("alice", "correct horse", HERE)) is LoginRefusal.WRONG


async def test_changed_user_file_applies_to_the_next_login(file: Path) -> None:
    users = Users(file)
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is Role.OPERATOR
    write_user(file, User("alice", Role.ENGINEER, HASH))
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is Role.ENGINEER
    file.unlink()  # noqa: ASYNC240 - a fast call
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is LoginRefusal.WRONG


async def test_unknown_user_takes_as_long_as_a_wrong_password(file: Path) -> None:
    users = Users(file)
    spent: dict[str, list[float]] = {"alice": [], "mallory": []}
    for _ in range(FREE_LOGINS):
        for name, found in spent.items():
            # Time of the processor: other work of the machine does not count.
            began = time.process_time()
            assert await users.log_in(Credentials(name, "wrong", HERE)) is LoginRefusal.WRONG
            found.append(time.process_time() - began)
    # The least of each: other work of this process, as that of its collector, counts.
    assert 0.3 < min(spent["alice"]) / min(spent["mallory"]) < 3


async def test_right_password_is_throttled_after_failures(file: Path) -> None:
    clock = Clock()
    users = Users(file, clock)
    for _ in range(FREE_LOGINS):
        assert await users.log_in(Credentials("alice", "wrong", HERE)) is LoginRefusal.WRONG
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is LoginRefusal.TOO_SOON
    assert await users.log_in(Credentials("alice", "correct horse", ELSEWHERE)) is Role.OPERATOR
    clock.now = 1.1
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is Role.OPERATOR


async def test_too_long_password_is_refused(file: Path) -> None:
    users = Users(file)
    assert await users.log_in(Credentials("alice", "x" * (PASSWORD_BYTES + 1), HERE)) is LoginRefusal.WRONG
    assert await users.log_in(Credentials("alice", "correct horse", HERE)) is Role.OPERATOR


def waits(patience: FailureThrottle, clock: Clock, failures: int, name: str = "alice") -> list[float]:
    """Fail each login as soon as it is allowed; return the waits between the attempts."""
    waited = []
    for _ in range(failures):
        began = clock.now
        while patience.is_blocked(keys_of_login(name, HERE)):
            clock.now += 0.5
        waited.append(clock.now - began)
        patience.failed(keys_of_login(name, HERE))
    return waited


def test_each_further_failure_doubles_the_wait_up_to_a_bound() -> None:
    clock = Clock()
    waited = waits(login_throttle(clock), clock, 16)
    assert waited[:FREE_LOGINS] == [0, 0, 0]
    assert waited[FREE_LOGINS:8] == [1, 2, 4, 8, 16]
    assert max(waited) == FailureThrottle.LONGEST_S


def test_many_names_from_one_address_are_throttled() -> None:
    clock = Clock()
    patience = login_throttle(clock)
    for number in range(FREE_OF_ADDRESS):
        assert not patience.is_blocked(keys_of_login(f"user-{number}", HERE))
        patience.failed(keys_of_login(f"user-{number}", HERE))
    assert patience.is_blocked(keys_of_login("somebody-else", HERE))
    assert not patience.is_blocked(keys_of_login("somebody-else", ELSEWHERE))


def test_failures_are_cleared_by_a_success_or_after_a_time() -> None:
    clock = Clock()
    patience = login_throttle(clock)
    waits(patience, clock, FREE_LOGINS - 1)
    patience.forget(keys_of_login("alice", HERE)[0])
    assert waits(patience, clock, FREE_LOGINS) == [0, 0, 0]
    clock.now += 10 * FailureThrottle.LONGEST_S
    assert waits(patience, clock, FREE_LOGINS) == [0, 0, 0]


def test_number_of_stored_failures_is_limited() -> None:
    patience = login_throttle(Clock())
    for number in range(3 * FailureThrottle.MOST):
        patience.failed(keys_of_login(f"user-{number}", f"192.0.2.{number}"))
    assert len(patience._failures) <= FailureThrottle.MOST  # noqa: SLF001 - it is not public


def test_written_user_does_not_change_other_users(file: Path) -> None:
    before = file.read_text()
    file.write_text(f"# people of line 4\n{before}")
    write_user(file, User("bob", Role.OBSERVER, HASH))
    assert {user.name: user.role for user in read_users(file).values()} == {
        "alice": Role.OPERATOR,
        "bob": Role.OBSERVER,
    }
    assert file.read_text().startswith(f"# people of line 4\n{before}")
    assert file.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize("line", ["nonsense", "bob:king:x", "bob:operator", ":operator:x", "bob:operator:a b"])
def test_malformed_line_is_skipped(file: Path, line: str) -> None:
    with file.open("a") as lines:
        lines.write(f"{line}\n\n")
    assert list(read_users(file)) == ["alice"]


def test_line_in_another_encoding_is_skipped_and_kept(file: Path) -> None:
    strange = f"Andr\xe9:engineer:{HASH}\n".encode("latin-1")
    file.write_bytes(strange + file.read_bytes())
    assert list(read_users(file)) == ["alice"]
    write_user(file, User("bob", Role.OBSERVER, HASH))
    assert file.read_bytes().startswith(strange)


async def test_user_with_a_damaged_hash_cannot_log_in(file: Path) -> None:
    write_user(file, User("bob", Role.ENGINEER, "$argon2id$damaged"))
    assert await Users(file).log_in(Credentials("bob", "", HERE)) is LoginRefusal.WRONG


def test_hash_for_unknown_users_has_the_cost_of_a_real_hash(file: Path) -> None:
    nobody = Users(file)._unknown.password_hash  # noqa: SLF001 - it is not public
    assert [len(part) for part in nobody.split("$")] == [len(part) for part in HASH.split("$")]
    assert nobody.split("$")[:4] == HASH.split("$")[:4]


@pytest.mark.parametrize(
    "end_of_line", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_name_with_an_end_of_line_is_not_valid(end_of_line: str) -> None:
    """A line that `str.splitlines` divides would be two: `eve` and another user with her role."""
    assert not re.fullmatch(NAME, f"eve{end_of_line}bob")


RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
"""`12345678901234567890`, the secret of the examples of RFC 6238 (appendix B)."""


@pytest.mark.parametrize(
    ("at_s", "code"), [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
)
def test_codes_of_rfc_6238_are_accepted_in_their_step(at_s: int, code: str) -> None:
    assert users.matching_step(RFC_SECRET, code, at_s) == at_s // users.STEP_S
    assert users.matching_step(RFC_SECRET, code, at_s + 3 * users.STEP_S) is None


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("secret123456", users.SplitSecret("secret", totp="123456")),
        ("secret", users.SplitSecret("secret")),
        ("12345678123456", users.SplitSecret("12345678", totp="123456")),
        ("secretwmyae-h97kb", users.SplitSecret("secret", recovery="wmyae-h97kb")),
        ("secret\u0661\u0662\u0663\u0664\u0665\u0666", users.SplitSecret("secret\u0661\u0662\u0663\u0664\u0665\u0666")),
    ],
)
def test_code_is_read_from_the_end_of_the_password(sent: str, expected: users.SplitSecret) -> None:
    assert users.split(sent) == expected


def test_new_recovery_codes_are_recognised() -> None:
    codes = users.new_recovery_codes()
    assert len(set(codes)) == users.RECOVERY_CODES
    assert {users.split(f"secret{code}") for code in codes} == {
        users.SplitSecret("secret", recovery=code) for code in codes
    }


@given(st.text(max_size=40))
def test_split_keeps_every_character(sent: str) -> None:
    parts = users.split(sent)
    assert parts.password + parts.totp + parts.recovery == sent
