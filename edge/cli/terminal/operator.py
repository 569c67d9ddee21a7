"""The person who runs a command: name, languages, session, the role that a command needs, and its audit record.

The settings decide whether commands need a login: `[users] cli`. It names people who share an account of the system and
limits what they change by mistake. It does not stop an administrator, who can write to the store and the settings.
"""

import os
import pwd
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from edge.access.audit_trail import append
from edge.access.localization import language_of_locale
from edge.access.login import Credentials, LoginRefusal, StoredMemory, Users
from edge.access.sessions import session_id
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import StoreAccess
from edge.config import Settings
from edge.foundation.errors import Refused
from edge.foundation.files import write_atomically
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.user import INTERVENTION_ROLES, Role, Session
from edge.store import logins
from edge.store.client import Store
from edge.store.commit import join


def operator_name() -> str:
    """Return the user who runs this command as the system knows it, not the environment; below sudo also its caller."""
    name = pwd.getpwuid(os.getuid()).pw_name
    caller = os.environ.get("SUDO_USER", "") if os.getuid() == 0 else ""
    return f"{caller} ({name})" if caller else name


def operator_languages() -> tuple[str, ...]:
    """Return the language of the operator, from the environment as gettext reads it."""
    # The first that is set decides.
    locale = next((found for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (found := os.environ.get(name))), "")
    return language_of_locale(locale)


async def write_record(at: StoreAccess, record: AuditRecord) -> None:
    """Write a record to the store and the journal. Raises Unavailable."""
    copy_to_journal(record)
    await append(at.store, [record], at.settings.retention.audit)


def copy_to_journal(record: AuditRecord) -> None:
    """Copy a record to the journal, where this machine has one."""
    try:
        from systemd.journal import send  # noqa: PLC0415 - an extra, installed with the package
    except ImportError:
        return
    fields = {
        name.upper(): str(value) for name, value in msgspec.to_builtins(record).items() if name not in {"at", "kind"}
    }
    with suppress(OSError):  # a machine without a journal
        send(f"command: {printable(record.action)}", AUDIT=record.kind, SYSLOG_IDENTIFIER="microdcs-edge", **fields)


_LOGIN = "EDGE_TOKEN"
_FLEET = "EDGE_FLEET_SESSION"
"""The session that a gateway opens for the process of a signed command: it has checked signature and policy."""
_OPERATOR_COMMANDS = frozenset({"jobs", "equipment", "alarms", "prompts"})
_INTERVENTIONS = {f"jobs {kind}": role for kind, role in INTERVENTION_ROLES.items()}
_ADVICE = "Log in with: edge users login NAME"


def role_for(action: str) -> Role:
    """Return the lowest role for a changing command, such as `jobs Abort`."""
    lowest = Role.OPERATOR if action.partition(" ")[0] in _OPERATOR_COMMANDS else Role.ENGINEER
    return _INTERVENTIONS.get(action, lowest)


async def authorize(at: StoreAccess, action: str, lowest: Role | None = None) -> str:
    """Return who runs a changing command, for audit records; `lowest` is the role where `role_for` does not know it.

    Raises Refused when the settings require a login with a role that the user does not have.
    """
    if at.settings.users.cli == "open":
        return await acting_user(at)
    name, role = await _logged_in(at)
    needed = lowest or role_for(action)
    if role < needed:
        problem = Text.of(
            "{name} is {role}; `edge {action}` needs the role {needed}",
            name=name,
            role=role.text,
            action=action,
            needed=needed.text,
        )
        raise Refused("login", problem, "Log in as a user with this role: edge users login NAME")
    return f"{name} ({operator_name()})"


async def acting_user(at: StoreAccess) -> str:
    """Return who runs a command that needs no role, for audit records: the user logged in, if any, and the system's.

    Where no login is required, that is the person who signed a command of the fleet.
    """
    system_user = operator_name()
    key = os.environ.get(_FLEET, "") if at.settings.users.cli == "open" else _stored_key()
    if not key:
        return system_user
    session = (await logins.load_sessions(at.store, [session_id(key)])).get(session_id(key))
    return f"{session.user} ({system_user})" if session else system_user


async def log_in(at: StoreAccess, name: str, secret: str) -> Role:
    """Open a session for a user and remember it for this user of the system. Raises Refused."""
    role = await _check(at, name, secret)
    key = secrets.token_urlsafe(32)
    session = Session(
        user=name,
        role=role.name.lower(),
        way="cli",
        instance=at.settings.gateway.name,
        since=now_ms(),
        address=os.uname().nodename,
        client=f"edge ({operator_name()})",
    )
    id, lifetime_ms = session_id(key), at.settings.users.session * 1000
    commit = logins.put_session(at.store.keys, id, session, lifetime_ms)
    await at.store.commit(join((commit, logins.touch_session(at.store.keys, id, datetime.now(UTC)))))
    write_atomically(_prepared(_session_file()), key.encode(), 0o600)
    return role


async def log_out(store: Store) -> bool:
    """End the session of this user of the system; return False when there is none."""
    key = _stored_key()
    _session_file().unlink(missing_ok=True)
    if not key:
        return False
    await store.commit(logins.remove_sessions(store.keys, [session_id(key)]))
    return True


def make_users(settings: Settings, store: Store) -> Users:
    """Return the users of these settings, with what the store remembers of logins."""
    roles = [Role[role.upper()] for role in settings.users.totp]
    return Users(Path(settings.users_file), memory=StoredMemory(store), totp_roles=roles)


async def _logged_in(at: StoreAccess) -> tuple[str, Role]:
    name, _, token = os.environ.get(_LOGIN, "").partition(":")
    if name and token and _FLEET not in os.environ:
        return name, await _check(at, name, token)
    key = _stored_key()
    id = session_id(key) if key else ""
    session = (await logins.load_sessions(at.store, [id])).get(id) if id else None
    if session is None:
        problem = "the settings require a login for commands that change something, and there is no session"
        raise Refused("login", problem, _ADVICE)
    await at.store.commit(logins.touch_session(at.store.keys, id, datetime.now(UTC)))
    return session.user, Role[session.role.upper()]


async def _check(at: StoreAccess, name: str, secret: str) -> Role:
    address = f"cli {operator_name()}"
    found = await make_users(at.settings, at.store).log_in(Credentials(name, secret, address))
    if isinstance(found, Role):
        await _record_login(at, name, "Good")
        return found
    await _record_login(at, name, found.value)
    if found is LoginRefusal.TOO_SOON:
        raise Refused("login", "too many failed logins", "Wait; each further failure doubles the wait.")
    if found is LoginRefusal.NO_SECOND_FACTOR:
        advice = Text.of("An administrator sets it: sudo edge users totp {name}", name=name)
        raise Refused("login", Text.of("the role of {name} requires a second factor", name=name), advice)
    # The other reasons are in the audit trail: they would show a guesser how far a guess is right.
    raise Refused("login", "wrong name, password or code", "The code follows the password directly: secret123456")


async def _record_login(at: StoreAccess, name: str, status: str) -> None:
    """Record a login on the command line. Raises Unavailable."""
    record = AuditRecord(
        at=now_ms(),
        kind="cli.login",
        instance=at.settings.gateway.name,
        user=name,
        action="login",
        status=status,
        application=f"edge ({operator_name()})",
    )
    await write_record(at, record)


def _session_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "microdcs-edge", "session")


def _prepared(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return file


def _stored_key() -> str:
    if key := os.environ.get(_FLEET):
        return key
    try:
        return _session_file().read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


@asynccontextmanager
async def recorded(at: StoreAccess, action: str, subject: str, comment: str = "") -> AsyncIterator[None]:
    """Record at the end of the block that it did `action`, or was refused and why.

    Raises Refused before the block when the settings require a login that permits it.
    """
    user = await authorize_command(at, action, subject)
    try:
        yield
    except Refused as refusal:
        await record_as(at, user, action, subject, refusal.message, comment)
        raise
    await record_as(at, user, action, subject, "Good", comment)


async def authorize_command(at: StoreAccess, action: str, subject: str, lowest: Role | None = None) -> str:
    """Return who runs a command that changes something; record and raise a refusal of the login."""
    try:
        return await authorize(at, action, lowest)
    except Refused as refusal:
        await record_as(at, operator_name(), action, subject, refusal.message)
        raise


async def record_as(at: StoreAccess, user: str, action: str, subject: str, status: str, comment: str = "") -> None:
    """Record a command of a user with its result. Raises Unavailable."""
    await write_record(at, record_of(at, user, action, subject, status, comment))


def record_of(at: StoreAccess, user: str, action: str, subject: str, status: str, comment: str = "") -> AuditRecord:
    """Return the record of a command of a user."""
    return AuditRecord(
        at=now_ms(),
        kind="cli.call",
        instance=at.settings.gateway.name,
        user=user,
        action=action,
        subject=subject,
        status=status,
        comment=comment,
    )
