"""Each command calls its method, and a refusal lists the commands allowed in the state of the job."""

import pytest

from edge.cli.jobs.commands import jobs
from edge.cli.jobs.method_call import COMMANDS, commands_in
from edge.model.job_state import METHODS, Cause, JobState


def test_every_job_method_has_its_command() -> None:
    assert {*COMMANDS.values(), Cause.STORE, Cause.STORE_AND_START} == set(METHODS)
    others = {"store", "list", "show", "watch", "why", "resolve", "resend", "export", "history", "replay", "results"}
    others |= {"retry", "skip", "force", "complete"}
    assert {*COMMANDS, *others} == set(jobs.commands)


@pytest.mark.parametrize(
    ("state", "commands"),
    [
        (JobState.NOT_ALLOWED_TO_START, ["start", "abort", "cancel", "update"]),
        (JobState.ALLOWED_TO_START, ["revoke", "abort", "cancel", "update"]),
        (JobState.RUNNING, ["pause", "stop", "abort"]),
        (JobState.INTERRUPTED, ["resume", "stop", "abort"]),
        (JobState.ENDED, ["clear"]),
        (JobState.ABORTED, ["clear"]),
    ],
)
def test_commands_of_a_state_match_the_transition_table(state: JobState, commands: list[str]) -> None:
    assert commands_in(state) == commands
