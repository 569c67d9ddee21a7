"""The commands that this instance has to send, per job: a copy of the outboxes in the store."""

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from edge.sfc.signal import Phase
from edge.station.decision import LoadedJob
from edge.store.runs import Outbox, Outgoing, StoredRun


class JobOutbox(Struct):
    """The commands of a run at a revision, in order, each with whether it was sent."""

    scope: str
    run_id: str
    revision: int
    commands: dict[Outgoing, bool]

    def unsent_stops(self) -> dict[Outgoing, bool]:
        """Return the stops that were not sent, which remain due when the run is gone or replaced."""
        return {command: sent for command, sent in self.commands.items() if command.phase is Phase.STOP and not sent}

    def is_newer(self, stored: StoredRun) -> bool:
        """Return whether this copy is of a later state of the run: replies may arrive out of order."""
        return self.run_id == stored.run.run_id and self.revision > stored.revision

    def is_as_new(self, stored: StoredRun) -> bool:
        """Return whether this copy is of the same or a later state of the run."""
        return self.run_id == stored.run.run_id and self.revision >= stored.revision


class OutboxCache:
    """The commands to be sent and those already sent; `queue` names the jobs with new commands.

    A command is queued when the decision that asks for it is committed, and removed when it was sent: by the next
    commit of its job, or by `remove_sent` of the sender.
    """

    def __init__(self, max_cached: int) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self._max_cached = max_cached
        self._jobs: dict[str, JobOutbox] = {}

    def get(self, job_id: str) -> JobOutbox | None:
        """Return the copy of a job's outbox."""
        return self._jobs.get(job_id)

    def unsent(self, job_id: str) -> Outbox:
        """Return the commands of a job that are to be sent, in order."""
        known = self._jobs.get(job_id)
        return tuple([command for command, was_sent in known.commands.items() if not was_sent]) if known else ()

    def is_unsent(self, job_id: str, outgoing: Outgoing) -> bool:
        """Return whether a command of a job is to be sent."""
        known = self._jobs.get(job_id)
        return known is not None and known.commands.get(outgoing) is False

    def has_sent(self, job_id: str) -> bool:
        """Return whether a command of a job was sent and is not removed from the store."""
        known = self._jobs.get(job_id)
        return known is not None and any(known.commands.values())

    def scope_of(self, job_id: str) -> str:
        """Return the scope of a job with commands."""
        return self._jobs[job_id].scope

    def mark_sent(self, job_id: str, outgoing: Outgoing) -> None:
        """Record that a command was sent."""
        known = self._jobs.get(job_id)
        if known and outgoing in known.commands:
            known.commands[outgoing] = True

    def update(self, loaded: LoadedJob) -> None:
        """Replace the copy by the outbox of a stored run; queue the job when it has new commands."""
        job_id, stored = loaded.job.job_id, loaded.stored
        known = self._jobs.pop(job_id, None)
        # A command that was sent while the run was written, or read, remains sent.
        before = known.commands if known else {}
        older = known.unsent_stops() if known and known.run_id != stored.run.run_id else {}
        commands = older | {outgoing: before.get(outgoing, False) for outgoing in stored.outbox}
        self._jobs[job_id] = JobOutbox(loaded.job.scope, stored.run.run_id, stored.revision, commands)
        if any(not was_sent and command not in before for command, was_sent in commands.items()):
            # A command that was known before is being sent: queueing the job would end its wait for the equipment.
            self.queue.put_nowait(job_id)
        self._evict()

    def drop_run(self, job_id: str) -> None:
        """Remove the commands of a removed run, except for its stops: the equipment may still work."""
        known = self._jobs.pop(job_id, None)
        if known and (stops := known.unsent_stops()):
            self._jobs[job_id] = replace(known, commands=stops)

    def queue_all(self) -> None:
        """Queue every job with commands."""
        for job_id, known in self._jobs.items():
            if known.commands:
                self.queue.put_nowait(job_id)

    def _evict(self) -> None:
        """Remove the oldest copy without commands: its revision is known to the store as well."""
        if len(self._jobs) > self._max_cached:
            empty = (job_id for job_id, known in self._jobs.items() if not known.commands)
            if (oldest := next(empty, None)) is not None:
                del self._jobs[oldest]
