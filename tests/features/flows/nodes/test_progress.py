"""Progress is reported within bounds to the worker and ignored outside of a worker."""

from edge.features.flows.nodes import progress


def test_progress_is_clamped_to_its_bounds() -> None:
    progress.report_progress(5)
    reports: list[tuple[int, str]] = []
    before = vars(progress)["_report"]
    try:
        progress.report_to(lambda percent, message: reports.append((percent, message)))
        progress.report_progress(50, "half")
        progress.report_progress(500, "v" * 1000)
    finally:
        progress.report_to(before)
    assert reports == [(50, "half"), (100, "v" * 200)]
