"""What differs between two archived jobs is stated in words, and nothing else."""

from typing import Any

from msgspec.structs import replace

from edge.features.archive.comparison import ArchivedResult, differences
from edge.features.archive.search import ArchivedJob
from edge.station.public_history import PublicHistory
from edge.station.public_result import PublicResult, ResultValue

JOB = ArchivedJob(
    id="r1", job_order_id="J1", scope="s", work_master="W", started_at=None, ended_at="", took_ms=2000,
    outcome="completed", verdict="ok", remark="",
)  # fmt: skip
TORQUE = ResultValue(name="torque", value=85.2, unit="Nm")
TRY = PublicResult(
    action="tighten", step="Bolt1", attempt=1, state="completed", late=False, sending="sent", sent_at=None,
    ended_at=None, error="", result={}, values=(TORQUE,), parts=(), traces=(), files=(), title="Anziehen",
    step_title="Schraube 1",
)  # fmt: skip


def _result(*results: PublicResult, **members: Any) -> ArchivedResult:
    return ArchivedResult(
        job=replace(JOB, **members), recipe_revision=1, recipe_hash="h", has_chart=False, parameters={"colour": "red"},
        results=results, history=PublicHistory(job_order_id="J1", scope="s", decisions=()),
    )  # fmt: skip


def test_jobs_that_are_the_same_differ_in_nothing() -> None:
    assert differences([_result(TRY), _result(TRY)], "de") == []


def test_difference_states_verdict_values_and_causes_in_the_language() -> None:
    bad = replace(TRY, attempt=2, causes=("Drehmoment 3.1 Nm unter 8 Nm",), values=(replace(TORQUE, value=3.1),))
    rows = differences([_result(TRY), _result(TRY, bad, verdict="not_ok", took_ms=3000)], "de")
    assert rows == [
        ("Urteil", ["i. O., Fertig", "n. i. O., Fertig"]),
        ("Dauer", ["2.0 s", "3.0 s"]),
        (
            "Schraube 1 – Anziehen",
            [
                "Fertig, Drehmoment 85.2 Nm",
                "Fertig, Versuch 2, Drehmoment 3.1 Nm unter 8 Nm, Drehmoment 3.1 Nm",
            ],
        ),
    ]


def test_answer_of_a_person_is_compared_in_words() -> None:
    asked = replace(TRY, values=(), answer="Ja", by="anna", title="Spalt", step_title="Spalt")
    (row,) = differences([_result(asked), _result(replace(asked, answer="Nein"))], "de")
    assert row == ("Spalt", ["Fertig, Ja, anna", "Fertig, Nein, anna"])
