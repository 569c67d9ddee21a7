"""`edge recipes list`, `show`, `history`, `release` and `rollback`: the recipes of a store and their revisions."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table

from edge.app.features import recipe_checks, settings_kinds, work_master_recorders
from edge.cli.terminal.operator import operator_name, recorded
from edge.cli.terminal.output import print_text
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
from edge.features.recipes.examiner import examine
from edge.features.recipes.revisions import RecipeRevision, load_revision, load_revisions
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.instant import rfc3339
from edge.model.isa95 import WorkMaster
from edge.model.json_value import plain_value
from edge.model.recipe import RECIPE_DATASCHEMA, is_recipe_schema
from edge.station.settings import WORK_MASTER, SettingOrigin, SettingsMethod, SettingSource, StationSettings
from edge.store.resources import load_work_masters


@click.command("list", epilog="Example: edge recipes list --scope station-1")
@one_scope_option
@wide_option
@store_command
async def list_(at: StoreAccess, scope: str | None) -> CommandOutput:
    """List the recipes of a scope with their released revision."""
    chosen = at.scope(scope)
    masters = [master for master in await load_work_masters(at.store, chosen) if is_recipe_schema(master.dataschema)]
    newest = [next(iter(await load_revisions(at.store, chosen, master.id)), None) for master in masters]
    rows = [(master, revision) for master, revision in zip(masters, newest, strict=True)]
    data = [{"id": master.id, "revision": _public(revision) if revision else None} for master, revision in rows]
    return CommandOutput({"scope": chosen, "recipes": data}, _list_table(rows))


def _list_table(rows: Iterable[tuple[WorkMaster, RecipeRevision | None]]) -> Table:
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
        raise Refused("unknown", Text.of("there is no revision of {work_master!r}", work_master=work_master))
    cells = ((item.number, item.hash, local_time(item.at), item.source, item.author, item.reason) for item in revisions)
    table = plain_table("revision", "hash", "released", "from", "by", "reason", rows=cells, empty="no revisions")
    return CommandOutput({"work_master": work_master, "revisions": [_public(item) for item in revisions]}, table)


def _public(revision: RecipeRevision) -> dict[str, Any]:
    return {
        "number": revision.number,
        "hash": revision.hash,
        "released_at": rfc3339(revision.at),
        "source": revision.source,
        "author": revision.author,
        "reason": revision.reason,
    }


@click.command(epilog="Example: edge recipes show WM-AXLE-FIT-001 --revision 3 > axle-3.json")
@click.argument("work_master")
@click.option("--revision", type=click.IntRange(min=1), help="Revision.  [default: the released one]")
@one_scope_option
@settings_option
def show(work_master: str, revision: int | None, scope: str | None, settings_file: Path | None) -> None:
    """Print a recipe as JSON, of any revision that is kept."""

    async def read(at: StoreAccess) -> object:
        return (await _revision(at, at.scope(scope), work_master, revision)).work_master.data

    print_text(msgspec.json.format(msgspec.json.encode(run_on_store(settings_file, read))).decode())


async def _revision(at: StoreAccess, scope: str, work_master: str, number: int | None) -> RecipeRevision:
    """Return a revision, by default the released one. Raises Refused when it is not kept."""
    if number is None:
        found = next(iter(await load_revisions(at.store, scope, work_master)), None)
    else:
        found = await load_revision(at.store, scope, work_master, number)
    if found is None:
        reason = Text.of("there is no such revision of {work_master!r}", work_master=work_master)
        raise Refused(
            "unknown", reason, Text.of("List them: edge recipes history {work_master}", work_master=work_master)
        )
    return found


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
    if faults := examine(recipe).faults:
        raise click.UsageError("; ".join(faults))

    async def store(at: StoreAccess) -> str:
        chosen = at.scope(scope)
        stored = {master.id: master for master in await load_work_masters(at.store, chosen)}.get(work_master)
        base = stored or WorkMaster(id=work_master)
        master = msgspec.structs.replace(base, data=plain_value(recipe), dataschema=RECIPE_DATASCHEMA)
        return await _store(at, chosen, master, reason, "release")

    print_text(run_on_store(settings_file, store))


@click.command(epilog='Example: edge recipes rollback WM-AXLE-FIT-001 --to 3 --reason "camera faults since 4"')
@click.argument("work_master")
@click.option("--to", "number", type=click.IntRange(min=1), required=True, help="Revision to release again.")
@click.option("--reason", required=True, help="Why.")
@one_scope_option
@settings_option
def rollback(work_master: str, number: int, reason: str, scope: str | None, settings_file: Path | None) -> None:
    """Release an earlier revision again, as a new one. Running jobs stay on theirs."""

    async def store(at: StoreAccess) -> str:
        chosen = at.scope(scope)
        former = await _revision(at, chosen, work_master, number)
        return await _store(at, chosen, former.work_master, f"back to {number}: {reason}", "rollback")

    print_text(run_on_store(settings_file, store))


async def _store(at: StoreAccess, scope: str, master: WorkMaster, reason: str, action: str) -> str:
    async with recorded(at, f"recipes {action}", master.id, reason):
        origin = SettingOrigin(SettingSource.COMMAND, operator_name(), reason)
        recorders = work_master_recorders(at.settings, origin)
        settings = StationSettings(at.store, settings_kinds(), recipe_checks=recipe_checks(), recorders=recorders)
        payload = msgspec.json.decode(msgspec.json.encode([master]))
        await settings.apply(scope, WORK_MASTER, SettingsMethod.PUT, payload)
    released = await _revision(at, scope, master.id, None)
    return f"{scope}: {master.id} is revision {released.number}, {released.hash}"
