"""`edge jobs`: shows jobs and calls the job methods, on the store of the settings."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import click

from edge.cli.files import compiled_or_exit
from edge.cli.jobs.calls import (
    call_by_id,
    call_with_order,
    complete_,
    decide,
    force_,
    parse_data,
    print_answer,
    resend_commands,
    retry_,
    skip_,
)
from edge.cli.jobs.history import (
    history_json,
    history_table,
    missing_text,
    read_recorded,
    replay_json,
    replay_text,
    write_gantt,
)
from edge.cli.jobs.report import detail, job_table, report, summary
from edge.cli.jobs.results import CopyFiles, export_jobs, read_results, results_text
from edge.cli.jobs.stored_job import read
from edge.cli.jobs.waiting import problem_data, problem_line, read_with_problems, waiting_json, waiting_text
from edge.cli.jobs.watch import watch_all, watch_job
from edge.cli.terminal.command_group import OrderedGroup, further_options
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import (
    FILE,
    json_option,
    one_scope_option,
    open_access,
    open_console,
    print_json,
    read_json,
    scope_option,
    settings_option,
)
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.model.job_state import TEXT, Cause
from edge.sfc.signal import Resolution, Resolve
from edge.station.stored_job import NotRecorded, replay_recorded
from edge.store.jobs import Job, load_all

_comment_option = click.option("--comment", help="A comment that stays with the job.")


@click.group(cls=OrderedGroup)
def jobs() -> None:
    """Show jobs; store, start, pause or end them.

    These commands work on the store of the settings, while gateways run on it; a gateway executes the requests. The
    exit status is 0 on success, 1 when the request is refused or the store is unavailable, and 2 when settings or
    arguments are invalid.
    """


@jobs.command("list", epilog="Example: edge jobs list --state Running --state Interrupted")
@one_scope_option
@click.option(
    "--state",
    "states",
    type=click.Choice(list(TEXT.values()), case_sensitive=False),
    metavar="STATE",
    multiple=True,
    help=f"Jobs in this state only: {', '.join(TEXT.values())}. May be repeated.",
)
@settings_option
@json_option
def list_(scope: str | None, states: tuple[str, ...], settings_file: Path | None, *, as_json: bool) -> None:
    """List the stored jobs, highest priority first."""

    async def read() -> list[Job]:
        async with open_access(settings_file) as at:
            return [job for text in await at.scopes(scope) for job in await load_all(at.store, text)]

    found = [job for job in asyncio.run(read()) if not states or TEXT[job.status.state] in states]
    if as_json:
        print_json([summary(job) for job in found])
    elif found:
        open_console().print(job_table(found))
    else:
        print_text("no jobs")


@jobs.command(epilog="Example: edge jobs show AXLE-0001")
@click.argument("job")
@settings_option
@json_option
def show(job: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show a job: its order, its run with steps and actions, its response."""
    stored = asyncio.run(read(settings_file, job))
    if as_json:
        print_json(detail(stored))
        return
    for part in report(stored, now_ms()):
        open_console().print(part)


@jobs.command(epilog="Example: edge jobs watch AXLE-0001")
@click.argument("job", required=False)
@one_scope_option
@settings_option
@json_option
def watch(job: str | None, scope: str | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Follow a job until it ends, or all jobs, or those of a scope, until Ctrl-C.

    A terminal shows the running chart; a file or a pipe receives a line, with --json an object, for each change of
    state, step and action. The exit status is 0 when the job ended, 1 when it was aborted or removed.
    """
    if job and scope:
        raise click.UsageError("--scope is for all jobs of a scope: leave it out, or JOB.")
    try:
        if job is None:
            asyncio.run(watch_all(settings_file, scope, as_json=as_json))
        else:
            raise SystemExit(asyncio.run(watch_job(settings_file, job, as_json=as_json)))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@jobs.command(epilog="Example: edge jobs why AXLE-0001")
@click.argument("job")
@settings_option
@json_option
def why(job: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Explain what a job waits for.

    For each enabled transition: the unmet terms of its condition, with the present values. For each command without
    an answer: its age and its deadline, and the problem of its equipment, such as a lock by another system.
    """
    stored, problems = asyncio.run(read_with_problems(settings_file, job))
    if as_json:
        print_json(waiting_json(stored, now_ms()) | {"equipment": [problem_data(problem) for problem in problems]})
    else:
        print_text("\n".join((*waiting_text(stored, now_ms()), *map(problem_line, problems))))


@jobs.command("history", epilog="Example: edge jobs history AXLE-0001 --svg AXLE-0001.svg")
@click.argument("job")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write a Gantt chart instead.")
@settings_option
@json_option
def history_(job: str, svg: Path | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Show every decision about a job: its signal, its instant and what it changed.

    `[retention] decisions` is how many are kept. The Gantt chart shows each step and action over time.
    """
    recorded = asyncio.run(read_recorded(settings_file, job))
    if svg is not None:
        write_gantt(recorded, svg, now_ms())
        print_text(f"{svg} written")
    elif as_json:
        print_json(history_json(recorded))
    else:
        if missing := missing_text(recorded):
            print_text(missing)
        open_console().print(history_table(recorded))


@jobs.command("results", epilog="Example: edge jobs results AXLE-0001 --traces curves")
@click.argument("job")
@further_options("jobs results")
@settings_option
@json_option
def results_(job: str, settings_file: Path | None, *, as_json: bool, copy_files: CopyFiles | None = None) -> None:
    """Show results of a job, also of earlier attempts and late ones, commands never sent, and copy files of traces.

    A trace is a file on the gateway that the result names with its hash and size: gzipped JSON. Each copy is compared
    with the hash. The exit status is 1 when a file is not stored any more, cannot be read or is damaged.
    """
    results, copied = asyncio.run(read_results(settings_file, job, copy_files))
    if as_json:
        print_json({"results": results, "traces": [copied_trace.as_data() for copied_trace in copied]})
    else:
        print_text("\n".join(results_text(results)) or "no results")
        for trace in copied:
            print_text(f"{trace.copied} written" if trace.copied else f"not copied: {trace.problem}")
    if any(copied_trace.problem for copied_trace in copied):
        raise SystemExit(1)


@jobs.command("replay", epilog="Example: edge jobs replay AXLE-0001 --recipe new-rear-axle.json")
@click.argument("job")
@click.option("--recipe", type=FILE, help="Replay with this recipe instead of that of the job.")
@settings_option
@json_option
def replay_(job: str, recipe: Path | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Feed the recorded signals of a job to its recipe again and compare the decisions.

    With --recipe it shows where a changed recipe would have decided otherwise. Nothing is sent and nothing is changed.
    The exit status is 0 when every decision is the same, 1 when one differs, 2 when the recipe is invalid.
    """
    other = compiled_or_exit(read_json(recipe)) if recipe else None
    result = replay_recorded(asyncio.run(read_recorded(settings_file, job)), other)
    if isinstance(result, NotRecorded):
        raise Refused("no_history", result.reason, "A longer history: [retention] decisions")
    if as_json:
        print_json(replay_json(result))
    else:
        print_text("\n".join(replay_text(result)))
    if not result.is_same:
        raise SystemExit(1)


@jobs.command(
    "resolve", epilog="Example: edge jobs resolve AXLE-0001 tighten --done --data '{\"torque\": 85}' --reason 'seen'"
)
@click.argument("job")
@click.argument("action")
@click.option("--done", is_flag=True, help="The action was done; --data is its result.")
@click.option("--failed", is_flag=True, help="The action failed, for the --reason.")
@click.option("--repeat", is_flag=True, help="Start the action again, as a new attempt.")
@click.option("--data", help="The result of an action that was done, as JSON.")
@click.option("--reason", required=True, help="What was seen; it stays with the job.")
@settings_option
@json_option
def resolve_(
    job: str,
    action: str,
    data: str | None,
    reason: str,
    settings_file: Path | None,
    *,
    done: bool,
    failed: bool,
    repeat: bool,
    as_json: bool,
) -> None:
    """Decide about an action of unknown outcome.

    The equipment could not find out whether it carried out the command. Look at the work, then decide. The name of the
    user who runs this command, and the reason, stay with the job and in the audit trail.
    """
    choices = ((done, Resolution.DONE), (failed, Resolution.FAILED), (repeat, Resolution.REPEAT))
    chosen = [resolution for is_chosen, resolution in choices if is_chosen]
    if len(chosen) != 1:
        raise click.UsageError("Choose one of --done, --failed and --repeat.")
    (decided,) = chosen
    if data is not None and decided is not Resolution.DONE:
        raise click.UsageError("--data is the result of an action that was done: use it with --done.")
    signal = Resolve(action, decided, parse_data(data), reason)
    print_answer(job, signal, asyncio.run(decide(settings_file, job, signal)), as_json=as_json)


for _command in (retry_, skip_, force_, complete_):
    jobs.add_command(_command)


@jobs.command("resend", epilog="Example: edge jobs resend AXLE-0001")
@click.argument("job")
@settings_option
@json_option
def resend_(job: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Send the commands of a job that have no answer again, under their ids.

    A device that recognises a repeated id drops it. A command that must not be repeated is not started again: the
    gateway searches for its outcome.
    """
    count = asyncio.run(resend_commands(settings_file, job))
    if as_json:
        print_json({"job": job, "commands": count})
    else:
        print_text(f"{count} commands are sent again" if count else "no command waits for an answer")


@jobs.command("export", epilog="Example: edge jobs export results.jsonl --undelivered --confirm")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@one_scope_option
@click.option("--undelivered", is_flag=True, help="Only jobs that stay because the MES has not confirmed their result.")
@click.option("--confirm", is_flag=True, help="Count the written results as received: their jobs go at their time.")
@settings_option
def export_(file: Path, scope: str | None, settings_file: Path | None, *, undelivered: bool, confirm: bool) -> None:
    """Write the ended jobs with their results to a new file, one JSON object per line.

    The jobs stay in the store; with --confirm they go [retention] ended_jobs after their end, or beyond kept_jobs.
    """
    if file.exists():
        raise click.UsageError(f"{file} exists already. Name a new file.")
    count = asyncio.run(export_jobs(settings_file, file, scope, undelivered_only=undelivered, confirm=confirm))
    print_text(f"{count} jobs written to {file}")


@jobs.command(epilog="Example: edge jobs store order.json --start")
@click.argument("file", type=FILE)
@click.option("--start", "start_too", is_flag=True, help="Allow it to start at once (StoreAndStart).")
@scope_option
@_comment_option
@settings_option
@json_option
def store(
    file: Path, scope: str | None, comment: str | None, settings_file: Path | None, *, start_too: bool, as_json: bool
) -> None:
    """Store a job order.

    FILE contains it as JSON in OPC UA spelling: {"JobOrderID": "AXLE-0001", "WorkMasterID": [{"ID": "rear-axle"}]}; -
    is standard input. Each invocation is a call of its own: repeated, it stores the job again where that was removed.
    """
    method = Cause.STORE_AND_START if start_too else Cause.STORE
    asyncio.run(call_with_order(settings_file, method, file, scope, comment)).print(as_json=as_json)


@jobs.command(epilog="Example: edge jobs update order.json")
@click.argument("file", type=FILE)
@scope_option
@_comment_option
@settings_option
@json_option
def update(file: Path, scope: str | None, comment: str | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Replace a job order that has not started.

    FILE contains the whole new order, as for `edge jobs store`.
    """
    asyncio.run(call_with_order(settings_file, Cause.UPDATE, file, scope, comment)).print(as_json=as_json)


def _by_id(name: str, method: Cause, what: str) -> Callable[..., None]:
    """Register the command of a method that names a stored job order."""

    @jobs.command(name, help=what, epilog=f"Example: edge jobs {name} AXLE-0001")
    @click.argument("job")
    @_comment_option
    @settings_option
    @json_option
    def command(job: str, comment: str | None, settings_file: Path | None, *, as_json: bool) -> None:

        asyncio.run(call_by_id(settings_file, method, job, comment)).print(as_json=as_json)

    return command


for _name, _method, _what in (
    ("start", Cause.START, "Allow a stored job to start."),
    ("revoke", Cause.REVOKE_START, "Revoke the permission to start (RevokeStart)."),
    ("pause", Cause.PAUSE, "Pause a running job: no new command is sent, its timers stop."),
    ("resume", Cause.RESUME, "Resume a paused job."),
    ("stop", Cause.STOP, "Stop a running or paused job; it ends as closed."),
    ("abort", Cause.ABORT, "Abort a job at once; it ends as aborted."),
    ("cancel", Cause.CANCEL, "Remove a job that has not started."),
    ("clear", Cause.CLEAR, "Remove a job that has ended, with its run and its response."),
):
    _by_id(_name, _method, _what)
