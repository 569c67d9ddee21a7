"""`edge jobs`: shows jobs and calls the job methods, on the store of the settings."""

from collections.abc import Callable
from pathlib import Path

import click
from msgspec import structs

from edge.cli.files import compiled_or_exit
from edge.cli.jobs.calls import (
    MethodResult,
    call_by_id,
    call_with_order,
    complete_,
    decide,
    force_,
    parse_data,
    read_order,
    reason_option,
    retry_,
    skip_,
    visiting_runs,
)
from edge.cli.jobs.history import (
    history_table,
    missing_text,
    read_recorded,
    replay_json,
    replay_text,
    write_gantt,
)
from edge.cli.jobs.results import CopyFiles, export_jobs, read_results, results_text
from edge.cli.jobs.tables import job_table, report, show_json
from edge.cli.jobs.waiting import problem_data, problem_line, read_with_problems, waiting_text
from edge.cli.jobs.watch import watch_all, watch_job
from edge.cli.terminal.command_group import OrderedGroup, Word, further_options
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import counted, print_text
from edge.cli.terminal.store_access import (
    FILE,
    CommandOutput,
    StoreAccess,
    json_option,
    one_scope_option,
    read_json,
    run_on_store,
    scope_option,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import wide_option
from edge.foundation.errors import Refused
from edge.model.job_state import TEXT, Cause
from edge.sfc.signal import Resolution, Resolve
from edge.station.clock import store_clock
from edge.station.manual_retry import resend
from edge.station.public_history import public_history
from edge.station.public_job import equipment_by_type, public_detail, public_job
from edge.station.stored_job import NotRecorded, load, replay_recorded
from edge.store.jobs import load_all

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
    type=Word(list(TEXT.values()), case_sensitive=False),
    metavar="STATE",
    multiple=True,
    help=f"Jobs in this state only: {', '.join(TEXT.values())}. May be repeated.",
)
@wide_option
@store_command
async def list_(at: StoreAccess, scope: str | None, states: tuple[str, ...]) -> CommandOutput:
    """List the stored jobs, highest priority first."""
    stored = [job for text in await at.scopes(scope) for job in await load_all(at.store, text)]
    chosen = [job for job in stored if not states or TEXT[job.status.state] in states]
    return CommandOutput([public_job(job) for job in chosen], job_table(chosen))


@jobs.command(epilog="Example: edge jobs show AXLE-0001")
@click.argument("job")
@wide_option
@store_command
async def show(at: StoreAccess, job: str) -> CommandOutput:
    """Show a job: its order, its run with steps and actions, its response."""
    clock = await store_clock(at.store)
    stored_job, now = await load(at.store, job, clock), clock()
    return CommandOutput(
        show_json(stored_job, now, equipment_by_type(at.settings.southbound)), tuple(report(stored_job, now))
    )


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
            run_on_store(settings_file, lambda at: watch_all(at, scope, as_json=as_json))
        else:
            raise SystemExit(run_on_store(settings_file, lambda at: watch_job(at, job, as_json=as_json)))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@jobs.command(epilog="Example: edge jobs why AXLE-0001")
@click.argument("job")
@store_command
async def why(at: StoreAccess, job: str) -> CommandOutput:
    """Explain what a job waits for.

    For each enabled transition: the unmet terms of its condition, with the present values. For each command without
    an answer: its age and its deadline, and the problem of its equipment, such as a lock by another system.
    """
    clock = await store_clock(at.store)
    stored_job, problems = await read_with_problems(at, job, clock)
    equipment, now = equipment_by_type(at.settings.southbound), clock()
    data = structs.asdict(public_detail(stored_job, now, equipment=equipment)) | {
        "equipment": [problem_data(problem) for problem in problems]
    }
    lines = (*waiting_text(stored_job, now, equipment), *map(problem_line, problems))
    return CommandOutput(data, "\n".join(lines))


@jobs.command("history", epilog="Example: edge jobs history AXLE-0001 --svg AXLE-0001.svg")
@click.argument("job")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write a Gantt chart instead.")
@wide_option
@store_command
async def history_(at: StoreAccess, job: str, svg: Path | None) -> CommandOutput | str:
    """Show every decision about a job: its signal, its instant and what it changed.

    `[retention] decisions` is how many are kept. The Gantt chart shows each step and action over time.
    """
    recorded = await read_recorded(at, job)
    if svg is not None:
        write_gantt(recorded, svg, (await store_clock(at.store))())
        return f"{svg} written"
    missing = missing_text(recorded)
    return CommandOutput(public_history(recorded), (*((missing,) if missing else ()), history_table(recorded)))


@jobs.command("results", epilog="Example: edge jobs results AXLE-0001 --traces curves")
@click.argument("job")
@further_options("jobs results")
@store_command
async def results_(at: StoreAccess, job: str, copy_files: CopyFiles | None = None) -> CommandOutput:
    """Show results of a job, also of earlier attempts and late ones, commands never sent, and copy files of traces.

    A trace is a file on the gateway that the result names with its hash and size: gzipped JSON. Each copy is compared
    with the hash. The exit status is 1 when a file is not stored any more, cannot be read or is damaged.
    """
    results, copied = await read_results(at, job, copy_files)
    lines = [f"{trace.copied} written" if trace.copied else f"not copied: {trace.problem}" for trace in copied]
    return CommandOutput(
        {"job_order_id": job, "results": results, "copies": [trace.as_data() for trace in copied]},
        ("\n".join(results_text(results)) or "no results", *lines),
        is_failed=any(trace.problem for trace in copied),
    )


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
    result = replay_recorded(run_on_store(settings_file, lambda at: read_recorded(at, job)), other)
    if isinstance(result, NotRecorded):
        raise Refused("no_history", result.reason, "A longer history: [retention] decisions")
    CommandOutput(replay_json(result), "\n".join(replay_text(result)), is_failed=not result.is_same).print(
        as_json=as_json
    )


@jobs.command(
    "resolve", epilog="Example: edge jobs resolve AXLE-0001 tighten --done --data '{\"torque\": 85}' --reason 'seen'"
)
@click.argument("job")
@click.argument("action")
@click.option("--done", is_flag=True, help="The action was done; --data is its result.")
@click.option("--failed", is_flag=True, help="The action failed, for the --reason.")
@click.option("--repeat", is_flag=True, help="Start the action again, as a new attempt.")
@click.option("--data", help="The result of an action that was done, as JSON.")
@reason_option
@settings_option
@json_option
def resolve_(
    job: str, action: str, data: str | None, reason: str, settings_file: Path | None, *, as_json: bool, **chosen: bool
) -> None:
    """Decide about an action of unknown outcome.

    The equipment could not find out whether it carried out the command. Look at the work, then decide. The name of the
    user who runs this command, and the reason, stay with the job and in the audit trail.
    """
    if list(chosen.values()).count(True) != 1:
        raise click.UsageError("Choose one of --done, --failed and --repeat.")
    (decided,) = (Resolution(name) for name, is_chosen in chosen.items() if is_chosen)
    if data is not None and decided is not Resolution.DONE:
        raise click.UsageError("--data is the result of an action that was done: use it with --done.")
    signal = Resolve(action, decided, parse_data(data), reason)
    run_on_store(settings_file, lambda at: decide(at, job, signal)).print(as_json=as_json)


for _command in (retry_, skip_, force_, complete_):
    jobs.add_command(_command)


@jobs.command("resend", epilog="Example: edge jobs resend AXLE-0001")
@click.argument("job")
@store_command
async def resend_(at: StoreAccess, job: str) -> CommandOutput:
    """Send the commands of a job that have no answer again, under their ids.

    A device that recognises a repeated id drops it. A command that must not be repeated is not started again: the
    gateway searches for its outcome.
    """
    async with recorded(at, "jobs resend", job):
        count = await resend(await visiting_runs(at), job)
    text = f"{count} commands are sent again" if count else "no command waits for an answer"
    return CommandOutput({"job_order_id": job, "commands": count}, text)


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
    count = run_on_store(
        settings_file, lambda at: export_jobs(at, file, scope, undelivered_only=undelivered, confirm=confirm)
    )
    print_text(f"{counted(count, 'job')} written to {file}")


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
    method, order = Cause.STORE_AND_START if start_too else Cause.STORE, read_order(file)
    run_on_store(settings_file, lambda at: call_with_order(at, method, order, scope, comment)).print(as_json=as_json)


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
    order = read_order(file)
    run_on_store(settings_file, lambda at: call_with_order(at, Cause.UPDATE, order, scope, comment)).print(
        as_json=as_json
    )


def _by_id(name: str, method: Cause, what: str) -> Callable[..., None]:
    """Register the command of a method that names a stored job order."""

    @jobs.command(name, help=what, epilog=f"Example: edge jobs {name} AXLE-0001")
    @click.argument("job")
    @_comment_option
    @store_command
    async def command(at: StoreAccess, job: str, comment: str | None) -> MethodResult:
        return await call_by_id(at, method, job, comment)

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
