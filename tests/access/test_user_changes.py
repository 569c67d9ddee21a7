"""Changes of users by the page and by commands at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edge.access.user_changes import remove, set_role
from edge.access.users import User, read_users, write_user
from edge.model.user import Role

_NAMES = [f"user-{number}" for number in range(20)]


def test_two_changes_at_the_same_time_are_both_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "users"
    for name in _NAMES:
        write_user(file, User(name, Role.OBSERVER, "$argon2id$v=19$m=32768,t=3,p=1$c2FsdHNhbHQ$aGFzaGhhc2g"))

    with ThreadPoolExecutor(8) as threads:
        changes = [threads.submit(set_role, file, name, Role.ENGINEER) for name in _NAMES[1:]]
        changes.append(threads.submit(remove, file, _NAMES[0]))
        for change in changes:
            change.result()

    assert {user.name: user.role for user in read_users(file).values()} == dict.fromkeys(_NAMES[1:], Role.ENGINEER)
