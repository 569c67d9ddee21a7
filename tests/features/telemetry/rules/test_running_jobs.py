"""The jobs that run at an instant."""

from edge.features.telemetry.rules.running_jobs import RunningJobs


def test_current_job_is_the_last_started_running_job() -> None:
    jobs = RunningJobs().start("J", 1).start("K", 2)
    assert (jobs.current, jobs.since) == ("K", 1)
    assert jobs.end("J") == RunningJobs(("K",), 1)
    assert jobs.end("K").current == "J"
    assert jobs.end("J").end("K") == RunningJobs()


def test_second_start_and_unknown_end_are_ignored() -> None:
    jobs = RunningJobs().start("J", 1).start("K", 2)
    assert jobs.start("J", 9) == jobs
    assert jobs.end("X") == jobs


def test_job_named_by_a_sample_is_its_current_job() -> None:
    jobs = RunningJobs().start("J", 1).start("K", 2)
    assert jobs.of_sample(None) == jobs.of_sample("K") == jobs
    assert jobs.of_sample("J") == RunningJobs(("K", "J"), 1)
    assert jobs.of_sample("gone") == RunningJobs()
