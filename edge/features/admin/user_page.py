"""Users at the station page and in the HTTP API: list, add, role, password, PIN, badge, tokens, second factor, remove.

The service changes the file only where it may write it; on an installed gateway that is the decision of the
administrator of the machine, who names a file in a folder of the service.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
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


class UserPin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new PIN of a user: four to eight digits."""

    name: _Name
    pin: Annotated[str, Meta(max_length=8)]


class UserBadge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The code of the new badge of a user, as its reader types it."""

    name: _Name
    badge: Annotated[str, Meta(max_length=128)]


class NewUserToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to create, and for how many days it is valid."""

    name: _Name
    days: Annotated[int, Meta(ge=1, le=3650)] = 365


class UserToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which token of a user."""

    name: _Name
    id: Annotated[str, Meta(max_length=64)]


class UserName(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which user."""

    name: _Name


class ChangedUsers(Struct, frozen=True, kw_only=True):
    """The users after a change, and how many sessions end by it."""

    users: tuple[PublicUser, ...]
    ended_sessions: int


class CreatedToken(Struct, frozen=True, kw_only=True):
    """A new token: it is stated once, and `until` is the last day it is valid."""

    users: tuple[PublicUser, ...]
    id: str
    until: str
    token: str


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
    forgets_pins: bool = False,
) -> ChangedUsers:
    name = call.body.name
    with recorded(services, call.caller, action, name, comment):
        if not user_changes.is_writable(_file(services)):
            raise _not_writable(_file(services))
        # A password is hashed in a thread: nothing waits for it.
        await asyncio.to_thread(change, _file(services))
    ended = await user_changes.follow_up(
        services.store, name, ends_sessions=ends_sessions, forgets_codes=forgets_codes, forgets_pins=forgets_pins
    )
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


def _roles_with_factor(services: PageServices) -> Sequence[str]:
    return administration(services).settings.users.totp


async def _set_pin(services: PageServices, call: ApiCall) -> ChangedUsers:
    given, roles = call.body, _roles_with_factor(services)
    return await _change(
        *(services, call, "users pin", lambda file: user_changes.set_pin(file, given.name, given.pin, roles)),
        forgets_pins=True,
    )


async def _remove_pin(services: PageServices, call: ApiCall) -> ChangedUsers:
    return await _change(
        *(services, call, "users pin --off", lambda file: user_changes.remove_pin(file, call.body.name)),
        forgets_pins=True,
    )


async def _set_badge(services: PageServices, call: ApiCall) -> ChangedUsers:
    given, roles = call.body, _roles_with_factor(services)
    return await _change(
        services, call, "users badge", lambda file: user_changes.set_badge(file, given.name, given.badge, roles)
    )


async def _remove_badge(services: PageServices, call: ApiCall) -> ChangedUsers:
    return await _change(
        services, call, "users badge --off", lambda file: user_changes.remove_badge(file, call.body.name)
    )


async def _add_token(services: PageServices, call: ApiCall) -> CreatedToken:
    given: NewUserToken = call.body
    new = user_changes.create_token(given.days)
    changed = await _change(
        *(services, call, "users token", lambda file: user_changes.add_token(file, given.name, new), new.id),
        ends_sessions=False,
    )
    return CreatedToken(users=changed.users, id=new.id, until=new.until, token=new.secret)


async def _revoke_token(services: PageServices, call: ApiCall) -> ChangedUsers:
    given: UserToken = call.body
    return await _change(
        *(services, call, "users token --revoke", lambda file: user_changes.revoke_token(file, given.name, given.id)),
        given.id,
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


def _operation(
    path: str, summary: str, execute: Execute, body: type[Struct], answer: type[Struct] = ChangedUsers
) -> ApiOperation:
    return ApiOperation("POST", path, summary, Role.ENGINEER, answer, execute, body)


OPERATIONS: Final = (
    _operation("/users/add", "Add a user.", _add, NewUser),
    _operation("/users/role", "Change the role of a user, and end the sessions.", _set_role, UserRole),
    _operation("/users/password", "Change a password, and end the sessions.", _set_password, UserPassword),
    _operation("/users/pin", "Set the PIN of a user for panels, and end the sessions.", _set_pin, UserPin),
    _operation("/users/pin-off", "Remove the PIN of a user, and end the sessions.", _remove_pin, UserName),
    _operation("/users/badge", "Set the badge of a user for panels, and end the sessions.", _set_badge, UserBadge),
    _operation("/users/badge-off", "Remove the badge of a user, and end the sessions.", _remove_badge, UserName),
    _operation("/users/token", "Create a token of a user for a program.", _add_token, NewUserToken, CreatedToken),
    _operation("/users/token-off", "Revoke a token, and end the sessions.", _revoke_token, UserToken),
    _operation("/users/second-factor-off", "Remove the second factor of a user.", _remove_factor, UserName),
    _operation("/users/remove", "Remove a user, and end the sessions.", _remove, UserName),
)
