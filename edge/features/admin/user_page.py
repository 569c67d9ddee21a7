"""Users at the station page and in the HTTP API: list, add, role, password, second factor, remove.

The service changes the file only where it may write it; on an installed gateway that is the decision of the
administrator of the machine, who names a file in a folder of the service.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from edge.access import user_changes
from edge.access.users import public_user
from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, Execute, PageData, PageServices
from edge.features.admin.administration import administration, recorded
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import PublicUser, Role

_Name = Annotated[str, Meta(min_length=1, max_length=64)]
_Password = Annotated[str, Meta(max_length=256)]
_RoleName = Literal["observer", "operator", "engineer"]
STATE_FILE: Final = "/var/lib/microdcs-edge/users"
"""Where the file may be so that the service of an installed gateway may write it."""


class NewUser(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user to add."""

    name: _Name
    role: _RoleName
    password: _Password


class UserRole(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new role of a user."""

    name: _Name
    role: _RoleName


class UserPassword(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new password of a user."""

    name: _Name
    password: _Password


class UserName(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which user."""

    name: _Name


class ChangedUsers(Struct, frozen=True, kw_only=True):
    """The users after a change, and how many sessions end by it."""

    users: tuple[PublicUser, ...]
    ended_sessions: int


def _file(services: PageServices) -> Path:
    return Path(administration(services).settings.users_file)


def _public(services: PageServices) -> tuple[PublicUser, ...]:
    totp = administration(services).settings.users.totp
    return tuple(public_user(user, totp) for user in user_changes.users_in(_file(services)).values())


async def _change(
    services: PageServices,
    call: ApiCall,
    action: str,
    change: Callable[[Path], None],
    comment: str = "",
    *,
    ends_sessions: bool = True,
    forgets_codes: bool = False,
) -> ChangedUsers:
    name = call.body.name
    with recorded(services, call.caller, action, name, comment):
        if not user_changes.is_writable(_file(services)):
            raise _not_writable(_file(services))
        # A password is hashed in a thread: nothing waits for it.
        await asyncio.to_thread(change, _file(services))
    ended = await user_changes.follow_up(services.store, name, ends_sessions=ends_sessions, forgets_codes=forgets_codes)
    return ChangedUsers(users=_public(services), ended_sessions=ended)


def _not_writable(file: Path) -> Refused:
    return Refused(
        "file",
        Text.of("the service may not write {file}.", file=file),
        Text.of(
            "Move it to a folder of the service, and name it in [users] file, as in {path}.",
            path=STATE_FILE,
        ),
    )


def _refuse_oneself(call: ApiCall, fault: Text) -> None:
    if call.body.name == call.caller.user:
        raise Refused("own_user", fault, "Another engineer can do it.")


async def _add(services: PageServices, call: ApiCall) -> ChangedUsers:
    new: NewUser = call.body
    role = Role[new.role.upper()]
    return await _change(
        *(services, call, "users add", lambda file: user_changes.add(file, new.name, role, new.password), new.role),
        ends_sessions=False,
    )


async def _set_role(services: PageServices, call: ApiCall) -> ChangedUsers:
    given: UserRole = call.body
    _refuse_oneself(call, Text.of("you cannot change your own role."))
    role = Role[given.role.upper()]
    return await _change(
        services, call, "users role", lambda file: user_changes.set_role(file, given.name, role), given.role
    )


async def _set_password(services: PageServices, call: ApiCall) -> ChangedUsers:
    given: UserPassword = call.body
    return await _change(
        services, call, "users passwd", lambda file: user_changes.set_password(file, given.name, given.password)
    )


async def _remove_factor(services: PageServices, call: ApiCall) -> ChangedUsers:
    _refuse_oneself(call, Text.of("you cannot remove your own second factor."))
    return await _change(
        *(services, call, "users totp --off", lambda file: user_changes.remove_second_factor(file, call.body.name)),
        ends_sessions=False,
        forgets_codes=True,
    )


async def _remove(services: PageServices, call: ApiCall) -> ChangedUsers:
    _refuse_oneself(call, Text.of("you cannot remove your own user."))
    return await _change(
        *(services, call, "users remove", lambda file: user_changes.remove(file, call.body.name)), forgets_codes=True
    )


async def users_page(services: PageServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    """Return the users; the reader is not among the data: the parts of a page are the same for each role."""
    caller.require(Role.ENGINEER)
    return "users.html", {
        "people": _public(services),
        "file": str(_file(services)),
        "state_file": STATE_FILE,
        "is_writable": user_changes.is_writable(_file(services)),
        "all_roles": [role.name.lower() for role in Role],
        "subjects": ["users"],
    }


def _operation(path: str, summary: str, execute: Execute, body: type[Struct]) -> ApiOperation:
    return ApiOperation("POST", path, summary, Role.ENGINEER, ChangedUsers, execute, body)


OPERATIONS: Final = (
    _operation("/users/add", "Add a user.", _add, NewUser),
    _operation("/users/role", "Change the role of a user, and end the sessions.", _set_role, UserRole),
    _operation("/users/password", "Change a password, and end the sessions.", _set_password, UserPassword),
    _operation("/users/second-factor-off", "Remove the second factor of a user.", _remove_factor, UserName),
    _operation("/users/remove", "Remove a user, and end the sessions.", _remove, UserName),
)
