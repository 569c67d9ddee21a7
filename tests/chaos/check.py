"""Compares what equipment, MES and store saw with what the recipes demand."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from edge.model.job_state import JobState
from edge.sfc.run import ActionState, Outcome, Run
from tests.chaos.campaign import Seen
from tests.chaos.equipment import Received, number_of
from tests.chaos.recipes import KINDS, TIMEOUT_MS, Demand

STATES = ["Running", "Ended/Completed"]


def faults(seen: Seen) -> list[str]:
    """Return every difference from what the recipes demand."""
    found = [f"{job_id} did not end" for job_id in seen.stuck]
    found += [f"the gateway ended oddly: {end}" for end in seen.odd_ends]
    found += [
        f"{job_id} is still active in the store, timer {seen.timers[job_id]}: {seen.stored.get(job_id)}"
        for job_id in seen.active
    ]
    commands: dict[str, list[Received]] = defaultdict(list)
    for received in seen.controller.received:
        commands[received.job_id].append(received)
    found += [f"{job_id} got commands, and nobody ordered it" for job_id in commands.keys() - seen.mes.answers.keys()]
    for job_id in seen.mes.answers:
        number = number_of(job_id)
        kind = KINDS[number % len(KINDS)]
        demand = kind.demand_of(number)
        reported = (
            *_of_store(seen, job_id, demand),
            *_of_commands(seen, commands[job_id], demand, _forgettable(seen, job_id)),
            *_of_events(seen, seen.mes.states.get(job_id, [])),
        )
        found += [f"{job_id} ({kind.name}): {text}" for text in reported]
    found += _of_pictures(seen)
    found += _of_archive(seen)
    found += [
        f"{job_id}: the deadline of {key} was set anew: {found}"
        for (job_id, key), instants in seen.deadlines.items()
        if len(instants) > 1
    ]
    return found


def _of_archive(seen: Seen) -> Iterator[str]:
    for name, job_ids in seen.archived.items():
        yield from (f"{name} has archived {job_id} twice" for job_id, count in Counter(job_ids).items() if count > 1)
    archived = {job_id for job_ids in seen.archived.values() for job_id in job_ids}
    for job_id, (job, _) in seen.stored.items():
        if job is not None and job.archived and job_id not in archived:
            yield f"{job_id} is marked as archived, and no archive has it"


def _of_store(seen: Seen, job_id: str, demand: Demand) -> Iterator[str]:
    job, stored_run = seen.stored[job_id]
    if job is None or stored_run is None:
        yield "it was accepted, and the store knows nothing of it"
        return
    run = stored_run.run
    if job.status.state is not JobState.ENDED or run.outcome is not Outcome.COMPLETED:
        yield f"it is {job.status.state.name} and its run {run.outcome}: {run.error}"
        return
    if (counts := {name: step.count for name, step in run.steps.items()}) != demand.steps:
        yield f"its steps were active {counts}, not {demand.steps}"
    timeouts = [association for association in run.associations.values() if association.state is ActionState.TIMED_OUT]
    if len(timeouts) != demand.timeouts:
        yield f"{len(timeouts)} of its actions timed out, not {demand.timeouts}"
    for timeout in timeouts:
        if (timeout.ended_at or 0) - (timeout.armed_at or 0) < TIMEOUT_MS:
            yield f"{timeout.action} timed out too early"
    if len(_pictures(run)) != demand.events:
        yield f"it took the pictures {_pictures(run)}, not {demand.events} of them"


def _forgettable(seen: Seen, job_id: str) -> set[str]:
    """Return the actions whose last command the broker may have lost: no step waits for their answer."""
    _, stored_run = seen.stored[job_id]
    if stored_run is None or not seen.kills["broker"] + seen.kills["all"]:
        return set()
    return {
        association.action
        for association in stored_run.run.associations.values()
        if association.state is ActionState.TIMED_OUT
    }


def _of_commands(seen: Seen, received: list[Received], demand: Demand, forgettable: set[str]) -> Iterator[str]:
    ids = Counter((item.action, item.attempt, item.phase) for item in received)
    if missing := {key for key in demand.commands - ids.keys() if key[0] not in forgettable}:
        yield f"these commands never came: {sorted(missing)}"
    if further := ids.keys() - demand.commands:
        yield f"these commands came and nothing asks for them: {sorted(further)}"
    if twice := [key for key, count in ids.items() if count > 1]:
        yield f"these commands came under several ids: {twice}"
    first = {item.action: item for item in reversed(received) if item.phase == "start"}
    for before, after in demand.order:
        if before in first and after in first:
            answered = seen.controller.answered.get(first[before].command_id)
            if answered is None or first[after].at < answered:
                yield f"{after} was commanded before {before} was answered"


def _of_events(seen: Seen, states: list[str]) -> Iterator[str]:
    if seen.appendfsync == "everysec":
        # Redis may have lost a published transition: it is executed and published again.
        states = [state for state, _ in itertools.groupby(states)]
    if states != STATES:
        yield f"its status events told {states}"


def _pictures(run: Run) -> list[str]:
    return [association.event_id for association in run.associations.values() if association.event_id]


def _of_pictures(seen: Seen) -> Iterator[str]:
    owners: dict[str, list[str]] = defaultdict(list)
    for job_id, (_, stored_run) in seen.stored.items():
        for picture in _pictures(stored_run.run) if stored_run else ():
            owners[picture].append(job_id)
    for picture, takers in owners.items():
        if len(takers) > 1:
            yield f"{picture} was taken {len(takers)} times: {takers}"
    for picture, job_id in seen.camera.reported:
        if owners.get(f"{seen.camera.source} {picture}") != [job_id]:
            yield f"the camera was told that {job_id} took {picture}, the store says otherwise"
