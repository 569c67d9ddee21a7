"""`edge audit`: shows who did what, and verifies that no record is missing or changed."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import click
import msgspec
from rich.table import Table
from rich.text import Text

from edge.access.audit_trail import ChainFault, find_faults
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import print_json, print_text, printable, usage_failure
from edge.cli.terminal.store_access import json_option, open_access, settings_option
from edge.cli.terminal.table import local_time, open_console, plain_table, utc_time
from edge.model.audit import AuditRecord, SealedRecord
from edge.store.audit import load_head, newest, read_all
from edge.store.client import Store


@click.group(cls=CommandGroup, invoke_without_command=True, epilog="Example: edge audit --json")
@settings_option
@json_option
@click.pass_context
def audit(context: click.Context, settings_file: Path | None, *, as_json: bool) -> None:
    """Show who did what, and verify that no record is missing or changed.

    Recorded are the changing calls of the MES, of RPC and OPC UA clients and of this command line, and the logins of
    OPC UA. `[retention] audit` is how many records are kept. Without a command it lists the newest records.
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
@settings_option
@json_option
def list_(
    last: int, user: str | None, subject: str | None, kind: str | None, settings_file: Path | None, *, as_json: bool
) -> None:
    """List the newest audit records, the oldest of them first: who did what, from where, with which result."""
    wanted = {"user": user, "subject": subject, "kind": kind}

    async def read() -> list[tuple[SealedRecord, AuditRecord | None]]:
        async with open_access(settings_file) as at:
            return await _newest(at.store, last, {name: text for name, text in wanted.items() if text is not None})

    found = asyncio.run(read())
    if as_json:
        print_json([_as_data(*row) for row in found])
    elif found:
        open_console().print(_table(found))
    else:
        print_text("no audit records")


@audit.command(epilog="Example: edge audit verify")
@settings_option
@json_option
def verify(settings_file: Path | None, *, as_json: bool) -> None:
    """Verify the chain of digests: print each missing or changed record.

    The newest digest is printed too: when the digest of an earlier day is not in the chain, the chain was computed
    again. The exit status is 0 when the chain is complete, 1 when it has a fault or the store is unavailable.
    """
    faults, number, digest = asyncio.run(_verify(settings_file))
    if as_json:
        print_json(
            {
                "records": number,
                "digest": digest,
                "faults": [{"number": fault.number, "problem": fault.problem} for fault in faults],
            }
        )
    else:
        for chain_fault in faults:
            print_text(f"record {chain_fault.number}: {chain_fault.problem}")
        print_text(f"{number} records, newest digest {digest or '-'}, {len(faults)} faults")
    if faults:
        raise SystemExit(1)


async def _verify(settings_file: Path | None) -> tuple[list[ChainFault], int, str]:

    async with open_access(settings_file) as at:
        # The head is read first and records that came after it are left out: a gateway may be at work.
        head = await load_head(at.store)
        everything = [sealed_record async for sealed_record in read_all(at.store)]
        found = [sealed_record for sealed_record in everything if sealed_record.number <= head.number]
        # Another limit may have removed records before: each record holds the one of its time.
        limits = [record.keep for sealed_record in everything if (record := _record(sealed_record)) and record.keep]
        keep = min(limits, default=0) - (len(everything) - len(found))
        return list(find_faults(found, head, keep)), head.number, head.digest


async def _newest(store: Store, last: int, wanted: dict[str, str]) -> list[tuple[SealedRecord, AuditRecord | None]]:

    if not wanted:
        return [(sealed_record, _record(sealed_record)) for sealed_record in await newest(store, last)]
    pairs = [(sealed_record, _record(sealed_record)) async for sealed_record in read_all(store)]
    return [pair for pair in pairs if all(getattr(pair[1], name, None) == text for name, text in wanted.items())][
        -last:
    ]


def _record(sealed: SealedRecord) -> AuditRecord | None:
    """Return the content of a stored record; None when it cannot be read."""
    try:
        return msgspec.json.decode(sealed.text, type=AuditRecord)
    except msgspec.DecodeError:
        return None


def _as_data(sealed: SealedRecord, record: AuditRecord | None) -> dict[str, object]:

    content = msgspec.structs.asdict(record) | {"at": utc_time(record.at)} if record else {"unreadable": sealed.text}
    return {"number": sealed.number, "digest": sealed.digest} | content


def _table(found: Iterable[tuple[SealedRecord, AuditRecord | None]]) -> Table:

    table = plain_table("number", "at", "kind", "user", "action", "subject", "result", "comment")
    for sealed, record in found:
        cells: tuple[object, ...] = (sealed.number, "", "", "", "record cannot be read", "", "", "")
        if record:
            cells = (
                sealed.number,
                local_time(record.at),
                record.kind,
                record.user,
                record.action,
                record.subject,
                record.status,
                record.comment,
            )
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table
