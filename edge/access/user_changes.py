"""Changes users in their file, for the command line and the page: who may be one, with which password."""

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from edge.access.password_hash import hash_badge, hash_password, is_password
from edge.access.sessions import request_end
from edge.access.users import (
    BADGE_LENGTH,
    NAME,
    PASSWORD_LENGTH,
    PIN_LENGTH,
    Token,
    User,
    digest,
    is_weak_pin,
    new_token,
    read_users,
    remove_user,
    write_user,
)
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role
from edge.store.client import Store
from edge.store.logins import forget_user, forget_wrong_pins, load_all_sessions


def check_name(name: str) -> None:
    """Raise Refused for a name that no user can have."""
    if not re.fullmatch(NAME, name):
        raise Refused(
            "user", Text.of("{name!r} is not a valid user name", name=name), "Use up to 64 characters without a colon."
        )


def check_password(secret: str) -> None:
    """Raise Refused for a length that is not allowed."""
    if len(secret) not in PASSWORD_LENGTH:
        problem = Text.of(
            "a password must have between {least} and {most} characters",
            least=PASSWORD_LENGTH[0],
            most=PASSWORD_LENGTH[-1],
        )
        raise Refused("user", problem, "Choose another password.")


def check_pin(pin: str) -> None:
    """Raise Refused for a PIN that is easy to guess, or has other characters than digits."""
    if not (pin.isascii() and pin.isdecimal()) or len(pin) not in PIN_LENGTH:
        least, most = PIN_LENGTH[0], PIN_LENGTH[-1]
        problem = Text.of("a PIN has {least} to {most} digits and nothing else", least=least, most=most)
        raise Refused("user", problem, "Choose another PIN.")
    if is_weak_pin(pin):
        raise Refused("user", "equal digits or digits in a row are tried first", "Choose another PIN.")


def check_badge(code: str) -> None:
    """Raise Refused for a code that cannot be that of a badge."""
    if len(code) not in BADGE_LENGTH or not code.isprintable():
        least, most = BADGE_LENGTH[0], BADGE_LENGTH[-1]
        problem = Text.of("a badge code has {least} to {most} printable characters", least=least, most=most)
        raise Refused("user", problem, "Read another badge.")


def require_no_code(user: User, roles_with_factor: Collection[str]) -> None:
    """Refuse a PIN or a badge for a user who needs a second factor: it would be a way around it. Raises Refused."""
    if user.totp or user.role.name.lower() in roles_with_factor:
        problem = Text.of(
            "{name} logs in with a second factor; a PIN or a badge would be a way around it", name=user.name
        )
        raise Refused("user", problem, "Remove the second factor, or the role from [users] totp.")


def users_in(file: Path) -> dict[str, User]:
    """Return the users of a file by their names. Raises Refused(`file`)."""
    with _file_errors(file):
        return read_users(file)


def user_in(file: Path, name: str) -> User:
    """Return the user with a name. Raises Refused(`user`), Refused(`file`)."""
    user = users_in(file).get(name)
    if user is None:
        raise Refused(
            "user",
            Text.of("there is no user {name!r} in {users_file}", name=name, users_file=file),
            "List them with: edge users list",
        )
    return user


def check_new(file: Path, name: str) -> None:
    """Raise Refused for a name that is not valid, or that a user has."""
    check_name(name)
    if name in users_in(file):
        raise Refused(
            "user",
            Text.of("there is a user {name}", name=name),
            Text.of("Change the password with: edge users passwd {name}", name=name),
        )


def add(file: Path, name: str, role: Role, secret: str) -> None:
    """Add a user. Raises Refused for a name or a password that is not allowed, and when the file cannot be written."""
    with _alone(file):
        check_new(file, name)
        check_password(secret)
        write_user(file, User(name, role, hash_password(secret)))


def set_password(file: Path, name: str, secret: str) -> None:
    """Change the password of a user. Raises Refused as `add` does."""
    check_password(secret)
    change(file, name, password_hash=hash_password(secret))


def set_pin(file: Path, name: str, pin: str, roles_with_factor: Collection[str]) -> None:
    """Set the PIN by which a user logs in at a panel. Raises Refused."""
    check_pin(pin)
    with _alone(file):
        user = user_in(file, name)
        require_no_code(user, roles_with_factor)
        write_user(file, replace(user, pin=hash_password(pin)))


def set_badge(file: Path, name: str, code: str, roles_with_factor: Collection[str]) -> None:
    """Set the badge by which a user logs in at a panel. Raises Refused, also for the badge of another user."""
    check_badge(code)
    with _alone(file):
        user = user_in(file, name)
        require_no_code(user, roles_with_factor)
        others = [other for other in users_in(file).values() if other.badge and other.name != name]
        for other in others:
            if is_password(code, other.badge):
                problem = Text.of("this is the badge of {other}", other=other.name)
                raise Refused(
                    "user", problem, Text.of("Remove it there: edge users badge {other} --off", other=other.name)
                )
        write_user(file, replace(user, badge=hash_badge(code, [other.badge for other in others])))


def remove_pin(file: Path, name: str) -> None:
    """Remove the PIN of a user. Raises Refused."""
    change(file, name, pin="")


def remove_badge(file: Path, name: str) -> None:
    """Remove the badge of a user. Raises Refused."""
    change(file, name, badge="")


class NewToken(Struct, frozen=True):
    """A token with its secret, which is nowhere else; `until` is the last day it is valid (YYYYMMDD)."""

    id: str
    until: str
    secret: str


def create_token(days: int) -> NewToken:
    """Return a token by which a program logs in, valid for some days; it counts once a user has it."""
    until = (datetime.now(UTC) + timedelta(days=days)).strftime("%Y%m%d")
    return NewToken(secrets.token_hex(4), until, new_token())


def add_token(file: Path, name: str, token: NewToken) -> None:
    """Add a token to a user. Raises Refused."""
    with _alone(file):
        user = user_in(file, name)
        write_user(file, replace(user, tokens=(*user.tokens, Token(token.id, token.until, digest(token.secret)))))


def revoke_token(file: Path, name: str, id: str) -> None:
    """Revoke the token of a user that has an id. Raises Refused."""
    with _alone(file):
        user = user_in(file, name)
        tokens = tuple(token for token in user.tokens if token.id != id)
        if len(tokens) == len(user.tokens):
            raise Refused(
                "user",
                Text.of("{name} has no token {revoke}", name=name, revoke=id),
                "List them with: edge users list",
            )
        write_user(file, replace(user, tokens=tokens))


def set_role(file: Path, name: str, role: Role) -> None:
    """Change the role of a user. Raises Refused."""
    change(file, name, role=role)


def remove_second_factor(file: Path, name: str) -> None:
    """Remove the second factor of a user. Raises Refused."""
    change(file, name, totp="", recovery=())


def remove(file: Path, name: str) -> None:
    """Remove a user. Raises Refused."""
    with _alone(file):
        user_in(file, name)
        remove_user(file, name)


def change(file: Path, name: str, **changes: object) -> None:
    """Change members of a user, as the file has the user then. Raises Refused(`user`), Refused(`file`)."""
    with _alone(file):
        write_user(file, replace(user_in(file, name), **changes))


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Read and write the file alone: of two changes at once, by the page and a command, one would be lost."""
    with _file_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def is_writable(file: Path) -> bool:
    """Return whether this process may change users: a changed file replaces the former one in its folder."""
    return os.access(file.parent, os.W_OK)


async def follow_up(
    store: Store, name: str, *, ends_sessions: bool = False, forgets_codes: bool = False, forgets_pins: bool = False
) -> int:
    """Forget the used codes or the wrong PINs of a user and end the sessions; return how many end.

    Raises Unavailable.
    """
    if forgets_codes:
        await forget_user(store, name)
    if forgets_pins:
        await forget_wrong_pins(store, name)
    if not ends_sessions:
        return 0
    sessions = await load_all_sessions(store)
    return len(await request_end(store, [id for id, (session, _) in sessions.items() if session.user == name]))


@contextlib.contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or file
        raise Refused(
            "file", Text.of("{where}: {reason}", where=where, reason=error.strerror), "Call it as root (sudo)."
        ) from error
