"""What runs at an instant: jobs, in the order in which they started, and spans between occurrences."""

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import Rule, Span


class RunningJobs(msgspec.Struct, frozen=True):
    """Running jobs; `since` is the start of the first one since last no job ran. `spans` began and have not ended."""

    ids: tuple[str, ...] = ()
    since: int | None = None
    spans: tuple[tuple[Span, int], ...] = ()
    """Each with its beginning."""

    @property
    def current(self) -> str | None:
        """Return the job to which samples belong: the one started last that still runs."""
        return self.ids[-1] if self.ids else None

    def start(self, job: str, at: int) -> "RunningJobs":
        """Return the jobs after a start; a job that runs already stays in its place."""
        if job in self.ids:
            return self
        return replace(self, ids=(*self.ids, job), since=at if self.since is None else self.since)

    def of_sample(self, job: str | None) -> "RunningJobs":
        """Return the jobs for a sample that names its job: that one is the current one; none when it has ended."""
        if job is None:
            return self
        if job not in self.ids:
            return replace(self, ids=(), since=None)
        return (
            self
            if self.current == job
            else replace(self, ids=(*(identifier for identifier in self.ids if identifier != job), job))
        )

    def end(self, job: str) -> "RunningJobs":
        """Return the jobs after an end."""
        ids = tuple(identifier for identifier in self.ids if identifier != job)
        return replace(self, ids=ids, since=self.since if ids else None)

    def begin_span(self, span: Span, at: int) -> "RunningJobs":
        """Return the spans after a beginning; one that has begun already continues."""
        return self if span in dict(self.spans) else replace(self, spans=(*self.spans, (span, at)))

    def end_span(self, span: Span) -> "RunningJobs":
        """Return the spans after an end."""
        return replace(self, spans=tuple(row for row in self.spans if row[0] != span))

    def open_since(self, rule: Rule) -> int | None:
        """Return since when a rule with `while` counts; None when it does not count now."""
        return dict(self.spans).get(rule.while_) if isinstance(rule.while_, Span) else self.since
