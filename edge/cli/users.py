"""`edge users` and `edge sessions`: manages the people and programs that may use OPC UA and the command line."""

import sys
import time
from pathlib import Path

import click

from edge.access import user_changes
from edge.access.sessions import request_end
from edge.access.user_changes import (
    check_badge,
    check_new,
    check_password,
    check_pin,
    follow_up,
    remove_second_factor,
    require_no_code,
    set_password,
    set_role,
    user_in,
    users_in,
)
from edge.access.users import digest, enrolment_uri, matching_step, new_recovery_codes, new_secret, public_user
from edge.app.features import gateway_settings
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import acting_user, log_in, log_out, record_as, recorded
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_action,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text
from edge.model.user import Role, public_session
from edge.store.logins import load_all_sessions


def new_password(name: str, *, from_stdin: bool) -> str:
    """Return a new password from the prompt or standard input. Raises Refused for a length that is not allowed."""
    secret: str
    if from_stdin:
        secret = sys.stdin.readline().rstrip("\r\n")
    else:
        secret = click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=True)
    check_password(secret)
    return secret


def confirm_code(secret: str) -> None:
    """Require a current code of the app, so that a user is not locked out. Raises Refused."""
    code = str(click.prompt("code of the app")).strip()
    if matching_step(secret, code, time.time()) is None:
        problem = Text.of(
            "{code} is not the code of this secret at {time}; nothing was changed",
            code=code,
            time=time.strftime("%H:%M:%S"),
        )
        raise Refused("user", problem, "Check the clocks of the phone and of this machine, and repeat the command.")


def new_pin(name: str, *, from_stdin: bool) -> str:
    """Return a new PIN from the prompt or standard input. Raises Refused for one that is easy to guess."""
    pin: str
    if from_stdin:
        pin = sys.stdin.readline().rstrip("\r\n")
    else:
        pin = click.prompt(f"PIN of {name}", hide_input=True, confirmation_prompt=True)
    check_pin(pin)
    return pin


def new_badge(name: str, *, from_stdin: bool) -> str:
    """Return a badge code from the reader, which types it, or standard input. Raises Refused for a wrong length."""
    code: str
    if from_stdin:
        code = sys.stdin.readline().rstrip("\r\n")
    else:
        code = click.prompt(f"hold the badge of {name} to the reader", hide_input=True)
    check_badge(code)
    return code


def record_change(
    settings_file: Path | None,
    action: str,
    name: str,
    comment: str = "",
    *,
    ends_sessions: bool = False,
    forgets_codes: bool = False,
) -> int:
    """Record a change of a user; return how many sessions of the user end by it.

    The file is changed also while the store cannot be used; a warning reports what was left out.
    """
    try:
        return run_on_store(
            settings_file,
            lambda at: _follow_up(at, action, name, comment, ends_sessions=ends_sessions, forgets_codes=forgets_codes),
        )
    except EdgeError as error:
        print_text(f"edge: not in the audit trail: {error.message}", err=True)
        if ends_sessions:
            print_text("edge: Open sessions continue; end them later with: edge sessions end", err=True)
        return 0


async def _follow_up(
    at: StoreAccess, action: str, name: str, comment: str, *, ends_sessions: bool, forgets_codes: bool
) -> int:
    await record_as(at, await acting_user(at), action, name, "Good", comment)
    forgets_pins = action.startswith("users pin")
    return await follow_up(
        at.store, name, ends_sessions=ends_sessions, forgets_codes=forgets_codes, forgets_pins=forgets_pins
    )


_ROLES = ("observer", "operator", "engineer")
_stdin_option = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")


@click.group(cls=CommandGroup)
def users() -> None:
    """Manage the users of page, OPC UA and command line: roles, passwords, PINs, badges, tokens.

    All of them are in one file, `[users] file` or else `[opcua] users_file`; a change takes effect at the next login.
    """


@users.command("list", epilog="Example: edge users list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the users with their roles, second factors, PINs, badges and tokens."""
    settings = gateway_settings(settings_file)
    public_users = [public_user(user, settings.users.totp) for user in users_in(Path(settings.users_file)).values()]
    if as_json:
        print_json(public_users)
        return
    for entry in public_users:
        tokens = "".join(f"  token {token.id} until {token.until}" for token in entry.valid_tokens)
        missing = "  second factor missing" if entry.second_factor_missing else ""
        factors = (("TOTP", entry.second_factor), ("PIN", entry.pin), ("badge", entry.badge))
        words = "".join(f"  {word}" for word, has_it in factors if has_it)
        print_text(f"{entry.name}  {entry.role}{words}{missing}{tokens}")
    if not public_users:
        print_text(f"no users in {settings.users_file}")


@users.command(epilog="Example: edge users add alice --role operator")
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), required=True, help="Role of the user.")
@_stdin_option
@settings_option
def add(name: str, role: str, settings_file: Path | None, *, password_stdin: bool) -> None:
    """Add a user."""
    settings = gateway_settings(settings_file)
    check_new(Path(settings.users_file), name)
    user_changes.add(Path(settings.users_file), name, Role[role.upper()], new_password(name, from_stdin=password_stdin))
    record_change(settings_file, "users add", name, role)
    print_text(f"{name} is {role}, in {settings.users_file}")


@users.command(epilog="Example: edge users passwd alice")
@click.argument("name")
@_stdin_option
@settings_option
def passwd(name: str, settings_file: Path | None, *, password_stdin: bool) -> None:
    """Change the password of a user, and end the sessions with the former password."""
    settings = gateway_settings(settings_file)
    user_in(Path(settings.users_file), name)
    set_password(Path(settings.users_file), name, new_password(name, from_stdin=password_stdin))
    ended = record_change(settings_file, "users passwd", name, ends_sessions=True)
    print_text(f"password of {name} changed; {ended} sessions ended")


@users.command(epilog="Example: edge users role alice engineer")
@click.argument("name")
@click.argument("role", type=click.Choice(_ROLES))
@settings_option
def role(name: str, role: str, settings_file: Path | None) -> None:
    """Change the role of a user, and end the sessions with the former role."""
    settings = gateway_settings(settings_file)
    set_role(Path(settings.users_file), name, Role[role.upper()])
    ended = record_change(settings_file, "users role", name, role, ends_sessions=True)
    print_text(f"{name} is {role}; {ended} sessions ended")


@users.command(epilog="Example: edge users remove alice")
@click.argument("name")
@settings_option
def remove(name: str, settings_file: Path | None) -> None:
    """Remove a user, and end the sessions of the user."""
    settings = gateway_settings(settings_file)
    user_changes.remove(Path(settings.users_file), name)
    ended = record_change(settings_file, "users remove", name, ends_sessions=True, forgets_codes=True)
    print_text(f"{name} removed; {ended} sessions ended")


@users.command(epilog="Example: edge users totp alice")
@click.argument("name")
@click.option("--off", is_flag=True, help="Remove the second factor.")
@click.option("--unconfirmed", is_flag=True, help="Write it without a code of the app as proof.")
@settings_option
@json_option
def totp(name: str, settings_file: Path | None, *, off: bool, unconfirmed: bool, as_json: bool) -> None:
    """Set a second factor for a user: one-time codes by time (TOTP) of an authenticator app.

    The secret and ten recovery codes are printed once. A recovery code is valid once in place of a code. At a login the
    code follows the password directly: with the password `secret` and the code 123456 the user enters secret123456.
    The sessions without a code end.
    """
    settings = gateway_settings(settings_file)
    user = user_in(Path(settings.users_file), name)
    if off:
        remove_second_factor(Path(settings.users_file), name)
        record_change(settings_file, "users totp --off", name, forgets_codes=True)
        print_text(f"{name} has no second factor")
        return
    secret, codes = new_secret(), new_recovery_codes()
    uri = enrolment_uri(secret, name, f"microdcs-edge {settings.gateway.name}")
    if as_json:
        print_json({"name": name, "secret": secret, "uri": uri, "recovery_codes": codes})
    else:
        print_text(f"secret: {secret}\nURI for the app: {uri}\nrecovery codes, each valid once:")
        print_text("\n".join(f"  {code}" for code in codes))
    if not (unconfirmed or as_json):
        confirm_code(secret)
    user_changes.change(Path(settings.users_file), user.name, totp=secret, recovery=tuple(map(digest, codes)))
    ended = record_change(settings_file, "users totp", name, ends_sessions=True, forgets_codes=True)
    if not as_json:
        print_text(f"{name} has a second factor; the code follows the password directly; {ended} sessions ended")


@users.command(epilog="Example: edge users token scada --days 365")
@click.argument("name")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long it is valid.")
@click.option("--revoke", metavar="ID", help="Revoke the token with this id.")
@settings_option
@json_option
def token(name: str, days: int, revoke: str | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Create a token by which a program logs in as a user, or revoke one.

    A program has no authenticator app. It sends the token in place of the password, over OPC UA as password of the
    user, on the command line as EDGE_TOKEN=NAME:TOKEN. The token is printed once.
    """
    settings = gateway_settings(settings_file)
    if revoke is not None:
        user_changes.revoke_token(Path(settings.users_file), name, revoke)
        record_change(settings_file, "users token --revoke", name, revoke, ends_sessions=True)
        print_text(f"token {revoke} of {name} revoked")
        return
    new = user_changes.create_token(days)
    user_changes.add_token(Path(settings.users_file), name, new)
    record_change(settings_file, "users token", name, new.id)
    if as_json:
        print_json({"name": name, "id": new.id, "until": new.until, "token": new.secret})
    else:
        print_text(f"token {new.id} of {name}, valid until {new.until}:\n{new.secret}")


@users.command(epilog="Example: edge users pin alice")
@click.argument("name")
@click.option("--off", is_flag=True, help="Remove the PIN.")
@click.option("--pin-stdin", is_flag=True, help="Read the PIN from standard input.")
@settings_option
def pin(name: str, settings_file: Path | None, *, off: bool, pin_stdin: bool) -> None:
    """Set a PIN of four to eight digits, by which a user logs in at a panel of the station.

    Wrong PINs before are forgotten. The sessions of the user end.
    """
    settings = gateway_settings(settings_file)
    file, roles = Path(settings.users_file), settings.users.totp
    if off:
        user_changes.remove_pin(file, name)
    else:
        require_no_code(user_in(file, name), roles)
        user_changes.set_pin(file, name, new_pin(name, from_stdin=pin_stdin), roles)
    ended = record_change(settings_file, f"users pin{' --off' if off else ''}", name, ends_sessions=True)
    print_text(f"{name} has {'no' if off else 'a'} PIN; {ended} sessions ended")


@users.command(epilog="Example: edge users badge alice")
@click.argument("name")
@click.option("--off", is_flag=True, help="Remove the badge.")
@click.option("--badge-stdin", is_flag=True, help="Read the code from standard input.")
@settings_option
def badge(name: str, settings_file: Path | None, *, off: bool, badge_stdin: bool) -> None:
    """Set the badge by which a user logs in at a panel of the station: its reader types a code and Enter.

    The sessions of the user end.
    """
    settings = gateway_settings(settings_file)
    file, roles = Path(settings.users_file), settings.users.totp
    if off:
        user_changes.remove_badge(file, name)
    else:
        require_no_code(user_in(file, name), roles)
        user_changes.set_badge(file, name, new_badge(name, from_stdin=badge_stdin), roles)
    ended = record_change(settings_file, f"users badge{' --off' if off else ''}", name, ends_sessions=True)
    print_text(f"{name} has {'no' if off else 'a'} badge; {ended} sessions ended")


@users.command(epilog="Example: edge users login alice")
@click.argument("name")
@_stdin_option
@settings_option
def login(name: str, settings_file: Path | None, *, password_stdin: bool) -> None:
    """Log in on the command line, where `[users] cli` is `login`; a code follows the password directly."""
    secret = sys.stdin.readline().rstrip("\r\n") if password_stdin else click.prompt("password", hide_input=True)

    role = run_on_store(settings_file, lambda at: log_in(at, name, secret))
    print_text(f"logged in as {name}, {role.name.lower()}")


@users.command(epilog="Example: edge users logout")
@store_action
async def logout(at: StoreAccess) -> str:
    """End the session of this user of the system on the command line."""
    return "logged out" if await log_out(at.store) else "no session"


_ADVICE = "List them with: edge sessions list"


@click.group(cls=CommandGroup)
def sessions() -> None:
    """Show and end the sessions of station page, OPC UA and command line."""


@sessions.command("list", epilog="Example: edge sessions list")
@wide_option
@store_command
async def list_sessions(at: StoreAccess) -> CommandOutput:
    """List the sessions of all gateways on the store, the most recently active first."""
    entries = await load_all_sessions(at.store)
    columns = ("id", "user", "role", "way", "gateway", "address", "client", "since", "last activity")
    rows = (
        (id, item.user, item.role, item.way, item.instance, item.address, item.client, local_time(item.since), seen)
        for id, (item, seen) in entries.items()
    )
    return CommandOutput(
        [public_session(id, item, seen) for id, (item, seen) in entries.items()],
        plain_table(*columns, rows=rows, empty="no sessions"),
    )


@sessions.command(epilog="Example: edge sessions end 4f1c09d2aa318be0")
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--user", help="End every session of this user.")
@settings_option
def end(ids: tuple[str, ...], user: str | None, settings_file: Path | None) -> None:
    """End sessions by their ids, or all of a user. Their gateway closes them within seconds.

    A client may log in again: to prevent that, remove the user or change the password.
    """
    if not ids and user is None:
        raise click.UsageError("name an ID or --user")

    async def work(at: StoreAccess) -> str:
        of_user = [id for id, (session, _) in (await load_all_sessions(at.store)).items() if session.user == user]
        async with recorded(at, "sessions end", user or " ".join(ids), " ".join(of_user)):
            ending = await request_end(at.store, [*ids, *of_user])
            if unknown := [id for id in ids if id not in ending]:
                raise Refused("session", Text.of("there is no session {unknown}", unknown=" ".join(unknown)), _ADVICE)
        return f"{len(ending)} sessions end"

    print_text(run_on_store(settings_file, work))
