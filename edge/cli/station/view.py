"""Reads and formats what a scope of a station accepts."""

import msgspec
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.model.acceptance import ResourceKind
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
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
