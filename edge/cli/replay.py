"""`edge replay`: checks that this release decides about stored jobs as they were decided."""

import asyncio
from pathlib import Path

import click

from edge.cli.jobs.replay import replay_json, replay_last, replay_text
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import json_option, print_json, settings_option
from edge.station.run_replay import JobReplay, NotRecorded


@click.command(epilog="Example: edge replay --all")
@click.option("--all", "every", is_flag=True, required=True, help="All stored jobs, or the --last of them.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="The N jobs that were started last.",
)
@settings_option
@json_option
def replay(last: int, settings_file: Path | None, *, every: bool, as_json: bool) -> None:  # noqa: ARG001 - `--all` is required and says what is replayed
    """Replay stored jobs: check that this release decides as they were decided.

    The recorded signals of each job go to its recipe again, and the decisions are compared. Run it with a new release
    before an upgrade. Nothing is sent and nothing is changed. The exit status is 0 when every
    decision is the same, else 1. One job, or another recipe: `edge jobs replay`.
    """
    found = asyncio.run(replay_last(settings_file, last))
    replayed = [item for item in found if isinstance(item, JobReplay)]
    missing = [item.reason for item in found if isinstance(item, NotRecorded)]
    differing = [job_replay for job_replay in replayed if not job_replay.is_same]
    if as_json:
        print_json(
            {
                "replayed": len(replayed),
                "not_recorded": missing,
                "differing": [replay_json(job_replay) for job_replay in differing],
            }
        )
    else:
        for element in differing:
            print_text("\n".join(replay_text(element)))
        for reason in missing:
            print_text(f"not replayed: {reason}")
        decisions = sum(job_replay.decisions for job_replay in replayed)
        print_text(f"jobs replayed: {len(replayed)}, decisions: {decisions}, jobs that differ: {len(differing)}")
    if differing:
        raise SystemExit(1)
