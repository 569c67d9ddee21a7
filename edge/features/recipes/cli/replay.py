"""`edge recipes replay`: what the newest jobs would have done with another recipe."""

from collections.abc import Iterator
from pathlib import Path

import click

from edge.cli.files import compiled_or_exit
from edge.cli.terminal.store_access import (
    FILE,
    CommandOutput,
    StoreAccess,
    json_option,
    read_json,
    run_on_store,
    scope_option,
    settings_option,
)
from edge.features.recipes.past_decisions import DraftReplay, ReplayedJob, replay_of, replayed_job
from edge.features.recipes.past_jobs import MOST_REPLAYED, PastJobs
from edge.foundation.text import ENGLISH


@click.command(epilog="Example: edge recipes replay new-axle.json --id WM-AXLE-FIT-001")
@click.argument("recipe", type=FILE)
@click.option("--id", "work_master", required=True, help="Work Master whose jobs are replayed.")
@click.option(
    "--last",
    type=click.IntRange(1, 1000),
    default=MOST_REPLAYED,
    show_default=True,
    help="Its newest jobs.",
)
@scope_option
@settings_option
@json_option
def replay(
    recipe: Path, work_master: str, last: int, scope: str | None, settings_file: Path | None, *, as_json: bool
) -> None:
    """Replay past jobs of a Work Master with another recipe.

    RECIPE contains the recipe as JSON; - is standard input. The recorded signals of each job of the store and of the
    archive go to it, and the first decision that differs is shown. Nothing is sent and nothing is changed. The exit
    status is 0 when every decision is the same, 1 when one differs, 2 when the recipe is invalid. All decisions of one
    job: `edge jobs replay`.
    """
    net = compiled_or_exit(read_json(recipe))

    async def read(at: StoreAccess) -> DraftReplay:
        jobs = await PastJobs(at.store, at.settings).newest(at.scope(scope), work_master, last)
        replayed = [replayed_job(job.job_id, await job.load(), net, ENGLISH) for job in jobs]
        return replay_of(replayed, len(jobs))

    result = run_on_store(settings_file, read)
    CommandOutput(result, "\n".join(_lines(result)), is_failed=bool(result.different)).print(as_json=as_json)


def _lines(result: DraftReplay) -> Iterator[str]:
    for job in result.jobs:
        yield from _of_job(job)
    yield f"jobs: {len(result.jobs)}, the same: {result.same}, other decisions: {result.different}"


def _of_job(job: ReplayedJob) -> Iterator[str]:
    if job.reason:
        yield f"not replayed: {job.reason}"
    elif job.first is not None:
        yield f"{job.job_order_id}: decision {job.first.number}, {job.first.signal}"
        yield f"  then: {job.first.then}"
        yield f"  now:  {job.first.now}"
