"""Changes users in their file, for the command line and the page: who may be one, with which password."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from edge.access.password_hash import hash_password
from edge.access.sessions import request_end
from edge.access.users import NAME, PASSWORD_LENGTH, User, read_users, remove_user, write_user
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role
from edge.store.client import Store
from edge.store.logins import forget_user, load_all_sessions


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


async def follow_up(store: Store, name: str, *, ends_sessions: bool = False, forgets_codes: bool = False) -> int:
    """Forget the used codes of a user and end the sessions; return how many end. Raises Unavailable."""
    if forgets_codes:
        await forget_user(store, name)
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
