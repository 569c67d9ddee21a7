"""Reads the history of a stored job and replays it, to show that the recorded decisions come again."""

from msgspec import Struct

from edge.foundation.errors import Defect
from edge.foundation.ticks import in_slices
from edge.sfc.history import DecisionRecord, read_record
from edge.sfc.net import Net
from edge.sfc.replay import Difference, differing_fields, replay, starts_at_the_beginning
from edge.station.runs import net_of
from edge.store import run_history, runs
from edge.store.client import Store
from edge.store.runs import StoredRun
from edge.store.version import DocumentTooNew


class RecordedRun(Struct, frozen=True):
    """The run of a job as it is stored, with its compiled recipe and the records of its decisions."""

    stored: StoredRun
    net: Net
    records: tuple[DecisionRecord, ...]


class NotRecorded(Struct, frozen=True):
    """There is nothing to show or to replay, and why."""

    reason: str


class JobReplay(Struct, frozen=True):
    """A replayed job: the number of its decisions, those that differ, and the fields that differ at the end.

    Fields are compared only for the recipe that the run has kept.
    """

    job_id: str
    decisions: int
    differences: tuple[Difference, ...]
    fields: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Return whether the replay made the recorded decisions."""
        return not self.differences and not self.fields


async def load_recorded(store: Store, job_id: str, newest: int = 0, rest_s: float = 0.0) -> RecordedRun | NotRecorded:
    """Read the run of a job with the `newest` records of its history; with 0 all of them.

    It pauses `rest_s` seconds after each millisecond: a gateway has other work.
    """
    try:
        stored = await runs.load(store, job_id)
        if stored is None:
            return NotRecorded(f"there is no run of job {job_id!r}: a job has one once it was started")
        net = net_of(stored.recipe)
        found = await run_history.load(store, job_id, stored.run.started_at or 0, newest)
        records = tuple(
            await in_slices((read_record(net, stored.run, stored_decision) for stored_decision in found), rest_s)
        )
    except (Defect, DocumentTooNew, KeyError, ValueError) as error:
        return NotRecorded(f"the run of job {job_id!r} cannot be read: {error}")
    if not records:
        return NotRecorded(f"no decision about job {job_id!r} is recorded: see [retention] decisions")
    return RecordedRun(stored, net, records)


def replay_recorded(recorded: RecordedRun, other: Net | None = None) -> JobReplay | NotRecorded:
    """Replay a run with its own recipe, or with another one."""
    run = recorded.stored.run
    if not starts_at_the_beginning(recorded.records):
        first = recorded.records[0].number
        return NotRecorded(f"the history of job {run.job_id!r} begins at decision {first}: the earlier ones are gone")
    if lost := next((record for record in recorded.records if not record.is_whole), None):
        return NotRecorded(f"the run of job {run.job_id!r} no longer keeps the result of decision {lost.number}")
    repeated = replay(other or recorded.net, run, recorded.records)
    fields = () if other else differing_fields(run, repeated.run)
    return JobReplay(run.job_id, len(recorded.records), repeated.differences, fields)
