"""`edge audit`: shows who did what, and verifies that no record is missing or changed."""

from collections.abc import Iterable
from pathlib import Path

import click
from rich.table import Table

from edge.access.audit_reading import find_records, verify_chain
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import counted, usage_failure
from edge.cli.terminal.store_access import CommandOutput, StoreAccess, json_option, settings_option, store_command
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.model.audit import AuditRecord, SealedRecord, public_record


@click.group(cls=CommandGroup, invoke_without_command=True, epilog="Example: edge audit --json")
@settings_option
@json_option
@click.pass_context
def audit(context: click.Context, settings_file: Path | None, *, as_json: bool) -> None:
    """Show who did what, and verify that no record is missing or changed.

    Recorded are the changing calls of the MES, of RPC and OPC UA clients, of station page and HTTP API, of signed
    commands and of this command line, and the logins and refusals of OPC UA and page. `[retention] audit` is how many
    records are kept. Without a command it lists the newest records.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_, settings_file=settings_file, as_json=as_json)
    elif settings_file is not None or as_json:
        usage_failure(f"write --settings and --json after the command: edge audit {context.invoked_subcommand} …")


@audit.command("list", epilog="Example: edge audit list --user anna --last 20")
@click.option("--last", type=click.IntRange(1, 100_000), default=50, metavar="N", show_default=True, help="At most N.")
@click.option("--user", help="Records of this user or source only.")
@click.option("--subject", help="Records about this job, equipment or alarm only.")
@click.option("--kind", help="Records of this kind only: opcua.call, mes.call, rpc.call, cli.call, …")
@wide_option
@store_command
async def list_(at: StoreAccess, last: int, user: str | None, subject: str | None, kind: str | None) -> CommandOutput:
    """List the newest audit records, the oldest of them first: who did what, from where, with which result."""
    wanted = {"user": user, "subject": subject, "kind": kind}
    records = await find_records(at.store, last, {name: text for name, text in wanted.items() if text is not None})
    return CommandOutput([public_record(*row) for row in records], _table(records))


@audit.command(epilog="Example: edge audit verify")
@store_command
async def verify(at: StoreAccess) -> CommandOutput:
    """Verify the chain of digests: print each missing or changed record.

    The newest digest is printed too: when the digest of an earlier day is not in the chain, the chain was computed
    again. The exit status is 0 when the chain is complete, 1 when it has a fault or the store is unavailable.
    """
    chain = await verify_chain(at.store)
    lines = [f"record {fault.number}: {fault.problem}" for fault in chain.faults]
    count, faults = counted(chain.records, "record"), counted(len(chain.faults), "fault")
    lines.append(f"{count}, newest digest {chain.digest or '-'}, {faults}")
    return CommandOutput(chain, "\n".join(lines), is_failed=bool(chain.faults))


def _table(records: Iterable[tuple[SealedRecord, AuditRecord | None]]) -> Table:
    columns = ("number", "at", "kind", "user", "action", "subject", "result", "comment")
    return plain_table(*columns, rows=(_cells(sealed, record) for sealed, record in records), empty="no audit records")


def _cells(sealed: SealedRecord, record: AuditRecord | None) -> tuple[object, ...]:
    if record is None:
        return (sealed.number, "", "", "", "record cannot be read", "", "", "")
    who = (sealed.number, local_time(record.at), record.kind, record.user)
    return (*who, record.action, record.subject, record.status, record.comment)
