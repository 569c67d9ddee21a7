"""The jobs that run at an instant, in the order in which they started."""

import msgspec


class RunningJobs(msgspec.Struct, frozen=True):
    """Running jobs; `since` is the start of the first one since last no job ran."""

    ids: tuple[str, ...] = ()
    since: int | None = None

    @property
    def current(self) -> str | None:
        """Return the job to which samples belong: the one started last that still runs."""
        return self.ids[-1] if self.ids else None

    def start(self, job: str, at: int) -> "RunningJobs":
        """Return the jobs after a start; a job that runs already stays in its place."""
        if job in self.ids:
            return self
        return RunningJobs((*self.ids, job), at if self.since is None else self.since)

    def of_sample(self, job: str | None) -> "RunningJobs":
        """Return the jobs for a sample that names its job: that one is the current one; none when it has ended."""
        if job is None:
            return self
        if job not in self.ids:
            return RunningJobs()
        return (
            self if self.current == job else RunningJobs((*(each for each in self.ids if each != job), job), self.since)
        )

    def end(self, job: str) -> "RunningJobs":
        """Return the jobs after an end."""
        ids = tuple(each for each in self.ids if each != job)
        return RunningJobs(ids, self.since if ids else None)
