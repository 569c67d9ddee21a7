"""`edge recipes list`, `show`, `history`, `release`, `rollback` and `confirm`: the recipes of a store."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import click
import msgspec
from rich.table import Table

from edge.cli.terminal.operator import acting_user, operator_languages, recorded
from edge.cli.terminal.output import did_you_mean, print_text
from edge.cli.terminal.store_access import (
    FILE,
    CommandOutput,
    StoreAccess,
    one_scope_option,
    read_json,
    run_on_store,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.features.recipes.api_models import public_draft, public_revision
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.release import Release, confirm_release, release_recipe, roll_back
from edge.features.recipes.revisions import RevisionLine, load_released, load_revisions
from edge.features.recipes.workbench import ask_here
from edge.foundation.errors import Refused
from edge.foundation.text import Text, language_for
from edge.model.isa95 import WorkMaster
from edge.model.recipe import is_recipe_schema
from edge.station.settings import SettingSource
from edge.store.resources import load_work_masters


@click.command("list", epilog="Example: edge recipes list --scope station-1")
@one_scope_option
@wide_option
@store_command
async def list_(at: StoreAccess, scope: str | None) -> CommandOutput:
    """List the recipes of a scope with their released revision."""
    chosen = at.scope(scope)
    masters = [master for master in await load_work_masters(at.store, chosen) if is_recipe_schema(master.dataschema)]
    rows = list(zip(masters, await load_released(at.store, chosen, [master.id for master in masters]), strict=True))
    data = [{"id": master.id, "revision": public_revision(revision) if revision else None} for master, revision in rows]
    return CommandOutput({"scope": chosen, "recipes": data}, _list_table(rows))


def _list_table(rows: Iterable[tuple[WorkMaster, RevisionLine | None]]) -> Table:
    cells = (
        (master.id, revision.number, revision.hash, local_time(revision.at), revision.author, revision.reason)
        if revision
        else (master.id, "", "", "", "", "")
        for master, revision in rows
    )
    return plain_table("work master", "revision", "hash", "released", "by", "reason", rows=cells, empty="no recipes")


@click.command(epilog="Example: edge recipes history WM-AXLE-FIT-001")
@click.argument("work_master")
@one_scope_option
@wide_option
@store_command
async def history(at: StoreAccess, work_master: str, scope: str | None) -> CommandOutput:
    """List the revisions of a recipe, the released one first."""
    revisions = await load_revisions(at.store, at.scope(scope), work_master)
    if not revisions:
        known = [master.id for master in await load_work_masters(at.store, at.scope(scope))]
        advice = did_you_mean(work_master, known, "List the recipes: edge recipes list")
        raise Refused(
            "unknown_recipe", Text.of("there is no revision of {work_master!r}", work_master=work_master), advice
        )
    cells = ((item.number, item.hash, local_time(item.at), item.source, item.author, item.reason) for item in revisions)
    table = plain_table("revision", "hash", "released", "from", "by", "reason", rows=cells, empty="no revisions")
    return CommandOutput(
        {"work_master": work_master, "revisions": [public_revision(item) for item in revisions]}, table
    )


@click.command(epilog="Example: edge recipes show WM-AXLE-FIT-001 --revision 3 > axle-3.json")
@click.argument("work_master")
@click.option("--revision", type=click.IntRange(min=1), help="Revision.  [default: the released one]")
@one_scope_option
@settings_option
def show(work_master: str, revision: int | None, scope: str | None, settings_file: Path | None) -> None:
    """Print a recipe as JSON, of any revision that is kept."""

    async def read(at: StoreAccess) -> object:
        return (await desk_at(at).revision(at.scope(scope), work_master, revision)).work_master.data

    print_text(msgspec.json.format(msgspec.json.encode(run_on_store(settings_file, read))).decode())


def desk_at(at: StoreAccess) -> Desk:
    """Return the desk of a command: it checks in its own process."""
    return Desk(at.store, at.settings, ask_here)


@click.command(epilog='Example: edge recipes release axle.json --id WM-AXLE-FIT-001 --reason "torque 85 Nm"')
@click.argument("file", type=FILE)
@click.option("--id", "work_master", required=True, help="Work Master of the recipe.")
@click.option("--reason", required=True, help="Why.")
@one_scope_option
@settings_option
def release(file: Path, work_master: str, reason: str, scope: str | None, settings_file: Path | None) -> None:
    """Release a recipe as the next revision of a Work Master.

    FILE contains the recipe as JSON; - is standard input. The next jobs run it; running jobs stay on their revision. A
    recipe with a fault is refused, see `edge check recipe`. The same recipe again makes no revision.
    """
    recipe = read_json(file)

    async def write(at: StoreAccess) -> str:
        chosen = at.scope(scope)
        return await _released(
            at,
            f"{chosen}/{work_master}",
            ("release", reason),
            lambda by: release_recipe(desk_at(at), chosen, work_master, recipe, reason, by, SettingSource.COMMAND),
        )

    print_text(run_on_store(settings_file, write))


@click.command(epilog='Example: edge recipes rollback WM-AXLE-FIT-001 --to 3 --reason "camera faults since 4"')
@click.argument("work_master")
@click.option("--to", "number", type=click.IntRange(min=1), required=True, help="Revision to release again.")
@click.option("--reason", required=True, help="Why.")
@one_scope_option
@settings_option
def rollback(work_master: str, number: int, reason: str, scope: str | None, settings_file: Path | None) -> None:
    """Release an earlier revision again, as a new one. Running jobs stay on theirs."""

    async def write(at: StoreAccess) -> str:
        chosen = at.scope(scope)
        return await _released(
            at,
            f"{chosen}/{work_master}",
            ("rollback", reason),
            lambda by: roll_back(desk_at(at), chosen, work_master, number, reason, by, SettingSource.COMMAND),
        )

    print_text(run_on_store(settings_file, write))


@click.command(epilog="Example: edge recipes drafts")
@wide_option
@store_command
async def drafts(at: StoreAccess) -> CommandOutput:
    """List the drafts of recipes, and which of them await a second person."""
    found = await desk_at(at).drafts()
    cells = (
        (
            draft.id,
            draft.scope,
            draft.work_master,
            draft.base or "",
            local_time(draft.changed_at),
            draft.changed_by,
            f"{draft.request.by}: {draft.request.reason}" if draft.request else "",
        )
        for draft in found
    )
    head = ("draft", "scope", "work master", "of revision", "changed", "by", "awaits confirmation")
    return CommandOutput({"drafts": list(map(public_draft, found))}, plain_table(*head, rows=cells, empty="no drafts"))


@click.command(epilog="Example: edge recipes confirm 3f0c7b12aa45")
@click.argument("draft")
@settings_option
def confirm(draft: str, settings_file: Path | None) -> None:
    """Confirm a release or a rollback that another person has asked for.

    DRAFT is the id that `edge recipes release` and the station page show. The recipe is checked again.
    """

    async def write(at: StoreAccess) -> str:
        desk = desk_at(at)
        version = (await desk.draft(draft)).current
        return await _released(
            at,
            draft,
            ("confirm", ""),
            lambda by: confirm_release(desk, draft, version, by, SettingSource.COMMAND),
        )

    print_text(run_on_store(settings_file, write))


async def _released(
    at: StoreAccess, subject: str, action: tuple[str, str], write: Callable[[Author], Awaitable[Release]]
) -> str:
    """Execute and record a release; return what became of it."""
    name, reason = action
    async with recorded(at, f"recipes {name}", subject, reason):
        done = await write(Author(await acting_user(at), language_for(operator_languages())))
    if done.draft is not None:
        return f"draft {done.draft.id} awaits another person: edge recipes confirm {done.draft.id}"
    if done.revision is None:
        return "nothing is released"
    return f"{done.revision.work_master.id} is revision {done.revision.number}, {done.revision.hash}"
