"""`edge station`: shows and sets what a station accepts, also from files, through the service of the MES."""

import pkgutil
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.table import Table
from rich.text import Text

from edge.app.features import recipe_checks, settings_kinds, work_master_recorders
from edge.cli.terminal.command_group import OpenGroup, Word
from edge.cli.terminal.operator import operator_name, recorded
from edge.cli.terminal.output import print_text, printable, usage_failure
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    one_scope_option,
    read_json,
    run_on_store,
    scope_option,
    settings_option,
    store_command,
)
from edge.model.acceptance import ResourceKind
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.net import Net
from edge.station.settings import ListedSetting, SettingOrigin, SettingsMethod, SettingSource, StationSettings
from edge.store import jobs, resources
from edge.store.client import Store

_NAMES = {
    ResourceKind.EQUIPMENT: "equipment",
    ResourceKind.MATERIAL_CLASS: "material classes",
    ResourceKind.MATERIAL_DEFINITION: "material definitions",
    ResourceKind.PERSONNEL: "personnel",
    ResourceKind.PHYSICAL_ASSET: "physical assets",
}


class WorkMasterView(msgspec.Struct, frozen=True):
    """A Work Master with the counts of its recipe, None without a recipe that runs here."""

    id: str
    description: str
    steps: int | None
    actions: int | None


class StationView(msgspec.Struct, frozen=True):
    """A scope; `max_job_orders` is the effective limit, `limit_set` is whether it was set for the scope."""

    scope: str
    open_job_orders: int
    max_job_orders: int
    limit_set: bool
    work_masters: tuple[WorkMasterView, ...]
    resources: dict[str, list[str]]


async def load_view(store: Store, scope: str, max_job_orders: int) -> StationView:
    """Read what a scope accepts; `max_job_orders` is the limit of the settings."""
    allowed = await resources.load_allowed(store, scope)
    masters = []
    for master in await resources.load_work_masters(store, scope):
        net = compile_recipe(master.data) if master.dataschema == RECIPE_DATASCHEMA else None
        recipe = net.recipe if isinstance(net, Net) else None
        text = master.description.text if master.description else ""
        counts = (len(recipe.steps), len(recipe.actions)) if recipe else (None, None)
        masters.append(WorkMasterView(master.id, text, *counts))
    return StationView(
        scope=scope,
        open_job_orders=await jobs.count_open(store, scope),
        max_job_orders=max_job_orders if allowed.max_job_orders is None else allowed.max_job_orders,
        limit_set=allowed.max_job_orders is not None,
        work_masters=tuple(masters),
        resources={kind.value: sorted(ids) for kind, ids in allowed.resources.items()},
    )


def table(view: StationView) -> Table:
    """Return a scope as a table."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_row(Text(view.scope, style="bold"))
    limit = "set for the scope" if view.limit_set else "by the settings"
    _row(rows, "jobs", f"{view.open_job_orders} open, at most {view.max_job_orders} ({limit})")
    for number, work_master_view in enumerate(view.work_masters):
        recipe = (
            "no recipe"
            if work_master_view.steps is None
            else f"{work_master_view.steps} steps, {work_master_view.actions} actions"
        )
        text = "  ".join(filter(None, (work_master_view.id, work_master_view.description, recipe)))
        _row(rows, "" if number else "Work Masters", text)
    if not view.work_masters:
        _row(rows, "Work Masters", "none: edge station set workmaster FILE")
    for kind, name in _NAMES.items():
        _row(rows, name, ", ".join(view.resources[kind]) or "none")
    return rows


def _row(rows: Table, name: str, text: str) -> None:
    rows.add_row(Text(name, style="cyan"), Text(printable(text)))


KINDS = (
    "workmaster",
    "equipment",
    "materialclass",
    "materialdefinition",
    "personnel",
    "physicalasset",
    "jobacceptance",
    *settings_kinds(),
)


@click.group(cls=OpenGroup)
def station() -> None:
    """Show and set what a station accepts: Work Masters, resources, job limit, rules, tags; also from files.

    `diff`, `apply` and `export` work with station files, the folder of `[station] files`. These commands work on the
    store of the settings, while gateways run on it. The exit status is 0 on success, 1 when the request is refused or
    the store is unavailable, and 2 when settings, files or arguments are invalid.
    """


@station.command(epilog="Example: edge station show")
@one_scope_option
@store_command
async def show(at: StoreAccess, scope: str | None) -> CommandOutput:
    """Show what each scope accepts, and how many jobs it has."""
    limit = at.settings.northbound.max_downloadable_job_orders
    views = [await load_view(at.store, text, limit) for text in await at.scopes(scope)]
    return CommandOutput(views, tuple(map(table, views)))


@station.command("set", epilog="Example: edge station set workmaster rear-axle.json --id rear-axle")
@click.argument("kind", type=Word(KINDS, case_sensitive=False), metavar="KIND")
@click.argument("what", nargs=-1)
@click.option("--delete", is_flag=True, help="Delete it instead.")
@click.option("--id", "master_id", help="The file is a recipe alone: store it as the Work Master of this ID.")
@scope_option
@settings_option
def set_(
    kind: str,
    what: tuple[str, ...],
    master_id: str | None,
    scope: str | None,
    settings_file: Path | None,
    *,
    delete: bool,
) -> None:
    """Set what a scope accepts, or with --delete remove it.

    KIND is workmaster, equipment, materialclass, materialdefinition, personnel, physicalasset, jobacceptance, rule, tag
    or recipetest. Rules, definitions of tags and tests of recipes are for all scopes.

    WHAT are ids or files. A name that ends in .json, or - for standard input, is read as a payload in the form of
    the MES, one item or a list; everything else is an id. A Work Master, a rule, the definition of a tag and the test
    of a recipe need a file unless they are deleted. For jobacceptance WHAT is the maximum number of open jobs;
    deleted, the limit of the settings applies. A recipe with faults is refused, and all faults are reported.
    """
    operation = SettingsMethod.DELETE if delete else SettingsMethod.PUT
    payload = _with_recipe(what, master_id) if master_id else _payload(kind, what, operation)
    if kind == "workmaster" and not delete:
        _check_recipes(payload)

    async def apply(at: StoreAccess) -> str:
        chosen = at.scope(scope)
        async with recorded(at, f"station {operation} {kind}", chosen, " ".join(what)):
            origin = SettingOrigin(SettingSource.COMMAND, operator_name())
            recorders = work_master_recorders(at.settings, origin)
            settings = StationSettings(at.store, settings_kinds(), recipe_checks=recipe_checks(), recorders=recorders)
            await settings.apply(chosen, kind, operation, payload)
        return f"{chosen}: {kind} {'deleted' if delete else 'set'}"

    print_text(run_on_store(settings_file, apply))


def _payload(kind: str, what: Sequence[str], operation: str) -> object:
    """Return the payload that a MES would send."""
    if kind == "jobacceptance":
        return _limit(what, operation)
    if not what:
        usage_failure(f"name at least one {kind}: an id, or a file that ends in .json")
    items: list[object] = []
    id_key, from_file = _form(kind)
    for word in what:
        if _is_file(word):
            data = read_json(Path(word))
            items += data if isinstance(data, list) else [data]
        elif from_file and operation == "PUT":
            usage_failure(f"{word}: a {from_file} is set from a file that ends in .json")
        else:
            items.append({id_key: word})
    return items


def _form(kind: str) -> tuple[str, str]:
    """Return the key of the id of an item, and what it is called if it can be set from a file only."""
    if location := settings_kinds().get(kind):
        listed: ListedSetting = pkgutil.resolve_name(location)
        return listed.name_member, listed.title
    return _ID_KEYS.get(kind, "ID"), "Work Master" if kind == "workmaster" else ""


_ID_KEYS = {"materialclass": "MaterialClassID", "materialdefinition": "MaterialDefinitionID"}


def _limit(what: Sequence[str], operation: str) -> object:
    if operation == "DELETE":
        return None
    if len(what) != 1:
        usage_failure("jobacceptance needs one number: the maximum of open jobs")
    if _is_file(what[0]):
        return read_json(Path(what[0]))
    if not what[0].isdecimal():
        usage_failure(f"jobacceptance needs a number, not {what[0]!r}")
    return {"max_downloadable_job_orders": int(what[0])}


def _is_file(text: str) -> bool:
    return text == "-" or text.endswith(".json")


def _with_recipe(what: Sequence[str], master_id: str) -> object:
    """Return a Work Master with a recipe."""
    if len(what) != 1 or not _is_file(what[0]):
        usage_failure("--id needs exactly one file that ends in .json")
    return [{"ID": master_id, "dataschema": RECIPE_DATASCHEMA, "data": read_json(Path(what[0]))}]


def _check_recipes(masters: object) -> None:
    """Report every fault and warning of every recipe; exit with status 1 on a fault, which the station would refuse."""
    faults: list[str] = []
    for master in masters if isinstance(masters, list) else ():
        if not isinstance(master, dict):
            continue
        if "ID" not in master and {"steps", "Steps"} & master.keys():
            usage_failure("the file is a recipe alone: name its Work Master with --id")
        name = master.get("ID")
        if master.get("dataschema") != RECIPE_DATASCHEMA:
            print_text(f"warning: {name}: no job can run it: its dataschema is not {RECIPE_DATASCHEMA}", err=True)
            continue
        compiled = compile_recipe(master.get("data"), checks=recipe_checks())
        if isinstance(compiled, RejectedRecipe):
            faults += (f"edge: {name}: {fault}" for fault in compiled.faults)
        else:
            for warning in compiled.warnings:
                print_text(f"warning: {name}: {warning}", err=True)
    if faults:
        print_text("\n".join(faults), err=True)
        print_text("edge: correct the recipe; `edge check recipe` finds the same faults", err=True)
        raise SystemExit(1)
