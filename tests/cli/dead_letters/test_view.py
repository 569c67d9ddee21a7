"""The report of a dead letter names what failed and the effect of `retry`."""

import pytest

from edge.cli.dead_letters.view import as_data, report
from edge.store.dead_letters import Letter, LetterKind

DETAILS = {"phase": "stop", "command_id": "J1/r/a/1", "step": "one", "type_id": "a.v1"}


@pytest.mark.parametrize(
    ("kind", "details", "what", "retried"),
    [
        (LetterKind.START, {}, "start of a job", "the job runs again from its beginning"),
        (LetterKind.DECISION, {}, "decision on a job", "the job runs again from its beginning"),
        (LetterKind.DEADLINE, {}, "deadline of a job", "the job runs again from its beginning"),
        (LetterKind.COMMAND, DETAILS, "command: stop", "the stop is sent again"),
        (LetterKind.COMMAND, DETAILS | {"phase": "start"}, "command: start", "the job runs again from its beginning"),
        (LetterKind.UNREADABLE, {"x": "y\x1b[2J"}, "unreadable entry", "the entry returns to the work stream"),
    ],
)
def test_each_kind_of_dead_letter_is_reported(
    kind: LetterKind, details: dict[str, str], what: str, retried: str
) -> None:
    lines = list(report("1-0", Letter(kind, "s", "J1", "because", 0, details)))
    assert any(line.split(maxsplit=1) == ["what", what] for line in lines)
    assert lines[-1].split(maxsplit=1) == ["retry", retried]
    assert "\x1b" not in "".join(lines)


def test_letter_without_a_job_shows_no_job() -> None:
    assert as_data("1-0", Letter(LetterKind.UNREADABLE, "s", "", "because", 0))["job_order_id"] is None
