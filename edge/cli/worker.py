"""`edge worker`: runs the node kinds of a site, on this or another machine."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import log_to_stderr, settings_option


@click.command(epilog="Example: edge worker --processes 2")
@click.option("--name", help="Name of this worker, one for each.  [default: HOST-PID]")
@click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Tasks at a time.")
@click.option(
    "--memory", type=click.IntRange(min=0), default=0, show_default=True, help="Most MB of a process; 0: no limit."
)
@click.option(
    "--lease",
    type=click.FloatRange(1, 600),
    default=15.0,
    show_default=True,
    help="Seconds after which another worker takes over the tasks of a dead one.",
)
@settings_option
def worker(name: str | None, processes: int, memory: int, lease: float, settings_file: Path | None) -> None:
    """Run a worker: it runs the nodes whose kinds are files of `[flows] nodes` or packages.

    Each task runs in a process of its own, which is killed at the time limit of the node. After Ctrl-C or SIGTERM the
    worker takes no further task and ends when those in progress have ended.
    """
    from edge.config import load_settings
    from edge.flows.plugins import load_kinds
    from edge.flows.worker import FlowWorker
    from edge.flows.worker_process import WorkerProcess
    from edge.southbound.kinds import EQUIPMENT_SETTINGS
    from edge.store.opening import open_store

    settings = load_settings(settings_file, os.environ, EQUIPMENT_SETTINGS)
    log_to_stderr("info")
    kinds = load_kinds(settings.flows.nodes)
    mine = sorted(kind.name for kind in kinds.values() if kind.in_worker)
    worker_id = name or f"{socket.gethostname()}-{os.getpid()}"

    async def run() -> None:
        async with open_store(settings.redis, consumer=None) as store:
            children = [WorkerProcess(settings.flows.nodes, memory) for _ in range(processes)]
            flow_worker = FlowWorker(store, worker_id, kinds, children, lease)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, flow_worker.stop)
            print_text(f"worker {worker_id} runs {', '.join(mine)}")
            await flow_worker.run()

    if not mine:
        raise click.UsageError("there is no node kind to run; name their folder in [flows] nodes.")
    asyncio.run(run())
