"""`edge dead-letters`: shows work that failed too often, and retries or drops it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text as RichText

from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import print_text, printable, usage_failure
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    run_on_store,
    settings_option,
    store_action,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.foundation.instant import now_ms
from edge.station.manual_retry import retry_letter
from edge.station.public_letter import drop_letters, find_letter, public_letter, retry_effect, subject_of
from edge.store.dead_letters import Letter, load_all


def table(letters: Mapping[str, Letter]) -> Table:
    """Return letters as a table, one per row."""
    fitted_table = plain_table("letter", "at", "job", "what", "reason", drop=("at", "what"), empty="no dead letters")
    for letter_id, letter in letters.items():
        cells = (letter_id, local_time(letter.at), letter.job_id, str(subject_of(letter)), str(letter.reason))
        fitted_table.add_row(*(RichText(printable(cell)) for cell in cells))
    return fitted_table


def report(letter_id: str, letter: Letter) -> Iterator[str]:
    """Yield the report of a letter, line by line."""
    facts = {
        "letter": letter_id,
        "at": local_time(letter.at),
        "scope": letter.scope,
        "job": letter.job_id,
        "what": str(subject_of(letter)),
        "reason": str(letter.reason),
        **letter.details,
        "retry": str(retry_effect(letter)),
    }
    width = max(map(len, facts))
    for name, text in facts.items():
        yield f"{printable(name):<{width}}  {printable(text)}"


@click.group("dead-letters", cls=CommandGroup)
def dead_letters() -> None:
    """Show work that failed too often; retry or drop it.

    Work that meets a defect is retried with growing delay. Then it becomes a dead letter, and its job fails. A batch of
    samples that cannot be evaluated is a dead letter, too; its name begins with telemetry/, that of a result which no
    command waited for with late/. The exit status is 0 on success, 1 when the request is refused or the store is
    unavailable, and 2 when settings or arguments are invalid.
    """


@dead_letters.command("list", epilog="Example: edge dead-letters list")
@wide_option
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the dead letters, oldest first."""
    letters = await load_all(at.store)
    data = [public_letter(letter_id, letter) for letter_id, letter in letters.items()]
    return CommandOutput(data, table(letters))


@dead_letters.command(epilog="Example: edge dead-letters show 1763624400000-0")
@click.argument("letter")
@store_command
async def show(at: StoreAccess, letter: str) -> CommandOutput:
    """Show a dead letter: its content, the reason, and the effect of `retry`."""
    stored_letter = await find_letter(at.store, letter)
    return CommandOutput(public_letter(letter, stored_letter), "\n".join(report(letter, stored_letter)))


@dead_letters.command(epilog="Example: edge dead-letters retry 1763624400000-0")
@click.argument("letter")
@store_action
async def retry(at: StoreAccess, letter: str) -> str:
    """Retry the work of a dead letter and drop the letter.

    A failed job runs again from its beginning under its id, as if the MES had cleared and stored it: check first what
    it has done already. A stop is sent again. A batch of samples is evaluated again.
    """
    async with recorded(at, "dead-letters retry", letter):
        stored_letter = await find_letter(at.store, letter)
        await retry_letter(at.store, letter, stored_letter, now_ms)
    return f"{letter}: retried" + (f" for job {printable(stored_letter.job_id)}" if stored_letter.job_id else "")


@dead_letters.command(epilog="Example: edge dead-letters drop 1763624400000-0")
@click.argument("letters", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Drop all dead letters.")
@settings_option
def drop(letters: tuple[str, ...], settings_file: Path | None, *, every: bool) -> None:
    """Drop dead letters."""
    if every == bool(letters):
        usage_failure("name the letters to drop, or use --all")

    async def do(at: StoreAccess) -> int:
        async with recorded(at, "dead-letters drop", "all" if every else " ".join(letters)):
            chosen = letters or tuple(await load_all(at.store))
            await drop_letters(at.store, chosen)
            return len(chosen)

    print_text(f"dropped: {run_on_store(settings_file, do)}")
