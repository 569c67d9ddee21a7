"""Makes samples and occurrences of the decisions about jobs; they are appended in the commit of the decision."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from edge.features.telemetry.alarm_publisher import ALARM_CALLER
from edge.features.telemetry.interest import RuleInterest
from edge.foundation.text import Text, as_text, in_every_language, join_texts
from edge.model.action_attempt import joining_process_of
from edge.ports.batch import Batch, doubtful, encode_batch, fault_of
from edge.ports.sample_lines import Line, Occurrence, Sample
from edge.ports.sample_value import JOB_ENDED, JOB_STARTED
from edge.ports.tag import TagDefinitions
from edge.sfc.run import STATE_FIELD, ActionState, Outcome, Run
from edge.station.decision import ENDED_BY, Decision
from edge.store import stream_of_samples as telemetry
from edge.store.commit import Commit, written_size
from edge.store.jobs import Job
from edge.store.keys import Keys

JOB_ABORTED: Final = "job.aborted"
"""A job ended before its recipe did, by a failure or an interlock: an abnormal condition, which is an alarm."""
JOB_STOPPED: Final = "job.stopped"
"""A person or the MES ended a job: a message, since it needs no response (ISA-18.2)."""
MAX_MEMBERS: Final = 64
"""Members of one result that become samples."""
_ANSWERED: Final = frozenset({ActionState.COMPLETED, ActionState.FAILED})
_CARRIER: Final = ("carrier_id", "carrier")


class JobSamples:
    """Adds samples to the commit of each decision: the results, and the start and end of the job."""

    def __init__(
        self,
        keys: Keys,
        interest: RuleInterest,
        equipment_of: Mapping[str, str],
        stream_length: int,
        tags: TagDefinitions | None = None,
    ) -> None:
        self._keys = keys
        self._interest = interest
        self._equipment_of = equipment_of
        self._stream_length = stream_length
        self._tags = tags or TagDefinitions()
        self.written_bytes = 0
        """Bytes that these samples took in the append-only file, about."""

    def commit_for(self, decision: Decision) -> Commit:
        """Return the entries to append with a decision; none when no rule uses them."""
        if self._interest.is_empty:
            return Commit()
        wanted = (line for line in job_lines(decision, self._equipment_of) if self._interest.wants(line))
        lines = tuple(self._judged(sample) for sample in wanted)
        if not lines:
            return Commit()
        batch = Batch("", 0, decision.at, lines, is_placed=True)
        commit = telemetry.append(self._keys, encode_batch(batch), self._stream_length)
        self.written_bytes += written_size(commit)
        return commit

    def _judged(self, line: Line) -> Line:
        if not isinstance(line, Sample):
            return line
        judged = self._tags.judge(line)
        return doubtful(line.tag, line.at) if isinstance(judged, str) else judged


def job_lines(decision: Decision, equipment_of: Mapping[str, str]) -> Iterator[Line]:
    """Yield the start of the job, the members of new results, and the end of the job."""
    at, stored_run, job = decision.at, decision.loaded.stored, decision.loaded.job
    run = stored_run.run
    if stored_run.revision == at and run.started_at == at:
        yield Occurrence(at, JOB_STARTED, job.job_id, None)
    for key, association in run.associations.items():
        is_new = association.ended_at == at and association.state in _ANSWERED and ("action", key) in run.touched
        if is_new and association.result is not None:
            action = decision.loaded.net.actions[key.latest]
            parameters = action.parameters | run.parameters if run.parameters else action.parameters
            process = joining_process_of(parameters)
            carrier = next((str(parameters[name]) for name in _CARRIER if parameters.get(name)), None)
            source = equipment_of.get(action.type_id, action.type_id)
            for name, value in islice(result_members(association.result), MAX_MEMBERS):
                sample = Sample(
                    at, f"{source}.{name}", value, process=process, job=job.job_id, action=key.action, carrier=carrier
                )
                if fault_of(sample) is None:
                    yield sample
    if run.ended and STATE_FIELD in run.touched:
        if run.outcome is not Outcome.COMPLETED:
            name = JOB_STOPPED if _is_ordered(run) else JOB_ABORTED
            error = run.error and str(run.error)
            why = dict(in_every_language(_why(run, job)))
            yield Occurrence(at, name, job.job_id, {"outcome": run.outcome.value, "error": error, "why": why})
        yield Occurrence(at, JOB_ENDED, job.job_id, None)


def _is_ordered(run: Run) -> bool:
    """Return whether a person or the MES has ended a job, not an alarm, the gateway or a failure."""
    if not isinstance(run.error, Text) or run.error.id not in ENDED_BY:
        return False
    by = run.error.values["by"]
    return not isinstance(by, Text) or by.id != ALARM_CALLER


def _why(run: Run, job: Job) -> Text:
    """Return what ended a job before its recipe did: `failed: …`, or who stopped or aborted it with their comment."""
    error = run.outcome.text if run.error is None else as_text(run.error)
    if run.outcome is Outcome.FAILED:
        return join_texts(": ", (run.outcome.text, error))
    return join_texts(": ", (error, *(comment.text for comment in job.comment if comment.text)))


def result_members(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield the typed members of a result by their names; `{"value": 85.2, "unit": "Nm"}` is one value."""
    if not isinstance(result, dict):
        yield "result", result
        return
    for name, member in result.items():
        if not isinstance(member, dict):
            yield str(name), member
        elif "value" in member:
            yield str(name), member["value"]
        else:
            inner = (
                (key, value["value"] if isinstance(value, dict) and "value" in value else value)
                for key, value in member.items()
            )
            yield from ((f"{name}.{key}", value) for key, value in inner if not isinstance(value, dict))
