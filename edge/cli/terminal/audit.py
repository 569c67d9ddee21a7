"""Records the changing commands of this command line in the audit trail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec

from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import StoreAccess
from edge.errors import Refused
from edge.instant import now_ms
from edge.model.audit import AuditRecord
from edge.ops.audit_trail import append


@asynccontextmanager
async def recorded(at: StoreAccess, action: str, subject: str, comment: str = "") -> AsyncIterator[None]:
    """Record at the end of the block that it did `action`, or was refused and why."""
    try:
        yield
    except Refused as refusal:
        await record_command(at, action, subject, refusal.message, comment)
        raise
    await record_command(at, action, subject, "Good", comment)


async def record_command(at: StoreAccess, action: str, subject: str, status: str, comment: str) -> None:
    """Record a command with its result in the store and the journal. Raises Unavailable."""
    record = AuditRecord(
        at=now_ms(),
        kind="cli.call",
        instance=at.settings.gateway.name,
        user=operator_name(),
        action=action,
        subject=subject,
        status=status,
        comment=comment,
    )
    _copy_to_journal(record)
    await append(at.store, [record], at.settings.retention.audit)


def _copy_to_journal(record: AuditRecord) -> None:
    try:
        from systemd.journal import send
    except ImportError:  # an extra, installed with the package
        return
    fields = {
        name.upper(): str(value) for name, value in msgspec.to_builtins(record).items() if name not in {"at", "kind"}
    }
    with suppress(OSError):  # a machine without a journal
        send(f"command: {printable(record.action)}", AUDIT=record.kind, SYSLOG_IDENTIFIER="microdcs-edge", **fields)
