"""`edge worker`: runs the node kinds of a site, on this or another machine."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from msgspec import structs

from edge import __version__
from edge.access.components import Describe, Report, registered
from edge.access.instances import process_token
from edge.app.features import gateway_settings
from edge.app.systemd import feed_watchdog, notifier
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import CommandOutput, StoreAccess, log_to_stderr, settings_option, store_command
from edge.cli.terminal.table import local_time
from edge.features.flows.plugins import ImportLimits, SiteKinds, load_checked_kinds
from edge.features.flows.settings import FlowsSettings
from edge.features.flows.work_queue import ListedWorker, list_workers
from edge.features.flows.worker import FlowWorker, WorkerProcess
from edge.foundation.errors import unwrap_group
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.model.instant import rfc3339
from edge.model.plant import Component, PluginState
from edge.store.client import Store
from edge.store.open_store import serve_stores

_UNLIMITED_MB = 1 << 20


@click.group(cls=CommandGroup, invoke_without_command=True, epilog="Example: edge worker --processes 2")
@click.option("--name", help="Name of this worker, one for each.  [default: HOST-PID]")
@click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Tasks at a time.")
@click.option(
    "--memory", type=click.IntRange(min=0), default=1024, show_default=True, help="Most MB of a process; 0: no limit."
)
@click.option(
    "--silence",
    type=click.FloatRange(1, 86_400),
    default=300.0,
    show_default=True,
    help="Seconds after which a node without a time limit that reports no progress is killed.",
)
@click.option(
    "--lease",
    type=click.FloatRange(1, 600),
    default=15.0,
    show_default=True,
    help="Seconds after which another worker takes over the tasks of a dead one.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=15.0,
    show_default=True,
    help="Seconds that tasks in progress may take to end after Ctrl-C or SIGTERM.",
)
@settings_option
@click.pass_context
def worker(
    context: click.Context,
    name: str | None,
    processes: int,
    memory: int,
    silence: float,
    lease: float,
    grace: float,
    settings_file: Path | None,
) -> None:
    """Run a worker: it runs the nodes whose kinds are files of `[flows] nodes` or packages.

    Each task runs in a process of its own, which is killed at the time limit of the node. A file that cannot be loaded
    is left out. After Ctrl-C or SIGTERM the worker takes no further task and ends when those in progress have ended, or
    returns them to other workers.
    """
    if context.invoked_subcommand is None:
        _run(name, processes, memory, silence, lease, grace, settings_file)


@worker.command("list", epilog="Example: edge worker list")
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the workers of the store, each with the node tasks that it runs, and since when."""
    workers = await list_workers(at.store)
    text = "\n".join(line for listed in workers for line in _lines(listed)) or "no workers"
    return CommandOutput([_data(listed) for listed in workers], text)


def _lines(listed: ListedWorker) -> Iterator[str]:
    kinds = ", ".join(listed.kinds) if listed.last_heartbeat else "ended: another worker takes its tasks"
    yield printable(f"{listed.id}  {kinds}")
    for task in listed.tasks:
        since = local_time(task.begun_at) if task.begun_at else "not begun"
        text = f"  {task.flow_id} cycle {task.cycle} {task.node_id} ({task.kind})  {since}  {task.progress} %"
        yield printable(f"{text}  {task.message}".rstrip())


def _data(listed: ListedWorker) -> dict[str, object]:
    tasks = [structs.asdict(task) | {"begun_at": rfc3339(task.begun_at)} for task in listed.tasks]
    return structs.asdict(listed) | {"last_heartbeat": rfc3339(listed.last_heartbeat), "tasks": tasks}


def _run(
    name: str | None,
    processes: int,
    memory: int,
    silence: float,
    lease: float,
    grace: float,
    settings_file: Path | None,
) -> None:

    settings = gateway_settings(settings_file)
    log_to_stderr("info")
    folder = settings.section(FlowsSettings).nodes
    worker_id = name or f"{socket.gethostname()}-{os.getpid()}"

    async def run() -> None:
        site = await load_checked_kinds(folder, ImportLimits(limit_mb=memory or _UNLIMITED_MB))
        for origin, fault in site.faults.items():
            print_text(f"{origin}: {fault}", err=True)
        mine = sorted(kind.name for kind in site.kinds.values() if kind.in_worker)
        if not mine:
            raise click.UsageError("there is no node kind to run; name their folder in [flows] nodes.")
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        notify = notifier()
        described = _description(worker_id, site, settings.labels)

        async def serve(store: Store) -> None:
            children = [
                WorkerProcess(folder, memory, silence_s=silence, excluded=tuple(site.faults)) for _ in range(processes)
            ]
            flow_worker = FlowWorker(store, worker_id, site.kinds, children, lease_s=lease, grace_s=grace)
            async with registered(store, worker_id, process_token(), described):
                print_text(f"worker {worker_id} runs {', '.join(mine)}")
                notify(f"READY=1\nSTATUS=runs {', '.join(mine)}")
                async with background_task(_stop_on(stopping, flow_worker), "stop"):
                    await flow_worker.run()

        async with background_task(feed_watchdog(notify, lambda: ()), "watchdog"):
            await serve_stores(settings.redis, serve, stopping)

    with unwrap_group():
        asyncio.run(run())


async def _stop_on(stopping: asyncio.Event, flow_worker: FlowWorker) -> None:
    await stopping.wait()
    flow_worker.stop()


def _description(id: str, site: SiteKinds, labels: Mapping[str, str]) -> Describe:
    """Return the function that describes this worker in the list of components."""
    component = Component(
        id=id,
        kind="worker",
        version=__version__,
        started=now_ms(),
        host=socket.gethostname(),
        pid=os.getpid(),
        labels=labels,
        problems="; ".join(f"{origin}: {fault}" for origin, fault in site.faults.items()),
    )
    loaded = [kind.name for kind in site.kinds.values() if kind.in_worker]
    plugins = tuple(PluginState(name=name, kind="node kind", state="loaded") for name in sorted(loaded))

    async def describe() -> Report:
        return Report(component, plugins)

    return describe
