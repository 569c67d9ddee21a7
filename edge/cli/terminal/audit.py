"""Records the changing commands of this command line in the audit trail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edge.cli.terminal.login import authorize
from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.record import write_record
from edge.cli.terminal.store_access import StoreAccess
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.model.audit import AuditRecord


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


async def authorize_command(at: StoreAccess, action: str, subject: str) -> str:
    """Return who runs a command that changes something; record and raise a refusal of the login."""
    try:
        return await authorize(at, action)
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
