"""Reasons come the most frequent first, and times of steps as quantiles."""

from edge.features.archive.analysis import StepQuantiles, analyse, analysis_of
from edge.features.archive.database import ArchiveFile
from edge.features.archive.search import Search
from edge.foundation.text import Text
from tests.features.archive.records import record


def test_jobs_without_a_reason_have_an_empty_analysis() -> None:
    analysis = analysis_of([])
    assert (analysis.jobs, analysis.reasons, analysis.steps) == (0, (), ())


def test_most_frequent_reason_comes_first_with_the_shares_up_to_it(archive_file: ArchiveFile) -> None:
    angle, camera = ("tighten: angle high",), ("inspect: timed out",)
    archive_file.write(
        [
            *(record(number, reasons=angle, verdict="not_ok") for number in range(3)),
            record(3, reasons=camera, verdict="not_ok"),
            record(4),
        ],
        {},
    )
    analysis = analyse(archive_file.file, Search())
    assert [(reason.reason, reason.jobs, reason.share) for reason in analysis.reasons] == [
        ("tighten: angle high", 3, 0.75),
        ("inspect: timed out", 1, 1.0),
    ]
    assert (analysis.jobs, analysis.ok) == (5, 1)


def test_times_of_the_newest_work_master_are_quantiles(archive_file: ArchiveFile) -> None:
    jobs = [record(number, steps={"Fit": number * 100}) for number in range(101)]
    archive_file.write([record(0, work_master="door", steps={"Open": 5}), *jobs[1:]], {})
    analysis = analyse(archive_file.file, Search())
    assert analysis.work_master == "axle"
    assert analysis.steps == (
        StepQuantiles(step="Fit", title="Fit", jobs=100, p5=595, p25=2575, p50=5050, p75=7525, p95=9505),
    )


def test_reasons_are_counted_in_the_language_of_the_reader(archive_file: ArchiveFile) -> None:
    """The pictures of a German page had English reasons; those of earlier versions are stored in English only."""
    late = Text.of("{action}: {fault}", action="inspect", fault=Text.of("timed out"))
    archive_file.write(
        [record(1, reasons=(str(late),), texts=(late,)), record(2, reasons=("tighten: angle high",))],
        {},
    )
    analysis = analyse(archive_file.file, Search(), "de")
    assert [reason.reason for reason in analysis.reasons] == ["inspect: über dem Zeitlimit", "tighten: angle high"]
