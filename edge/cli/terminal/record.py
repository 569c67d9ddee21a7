"""Writes an audit record of a command to the store and the journal."""

from contextlib import suppress

import msgspec

from edge.access.audit_trail import append
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import StoreAccess
from edge.model.audit import AuditRecord


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
