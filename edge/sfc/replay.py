"""Repeats a run from its recorded signals, with its own recipe or with another one, and compares the decisions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from edge.sfc.advance import advance
from edge.sfc.changes import Changes, changes_of
from edge.sfc.history import DecisionRecord
from edge.sfc.net import Net
from edge.sfc.run import Run, new_run
from edge.sfc.run_fields import encode
from edge.sfc.signal import Advanced, Start


class Difference(Struct, frozen=True):
    """A signal for which the repetition decided otherwise: the recorded changes, and those of the repetition.

    `ignored` is why the repetition ignored the signal, empty when it did not.
    """

    record: DecisionRecord
    repeated: Changes
    ignored: str


class Replay(Struct, frozen=True):
    """A repeated run, and where its decisions differ from the records."""

    run: Run
    differences: tuple[Difference, ...]


def starts_at_the_beginning(records: Sequence[DecisionRecord]) -> bool:
    """Return whether records begin with the start of their run: only then can it be repeated."""
    return bool(records) and isinstance(records[0].signal, Start)


def replay(net: Net, recorded: Run, records: Sequence[DecisionRecord]) -> Replay:
    """Repeat a run whose records start at its beginning, from the parameters that it was started with."""
    run = new_run(recorded.job_id, recorded.scope, recorded.run_id, recorded.parameters)
    run = replace(run, early=dict(enumerate(records[0].early, 1)))
    differences = []
    for record in records:
        decided = advance(net, run, record.signal, record.at, record.mirrors)
        if isinstance(decided, Advanced):
            repeated, ignored = changes_of(net, run, decided), ""
            run = decided.run
        else:
            repeated, ignored = Changes(), decided.reason
        if ignored or repeated != record.changes:
            differences.append(Difference(record, repeated, ignored))
    return Replay(run, tuple(differences))


def differing_fields(recorded: Run, repeated: Run) -> tuple[str, ...]:
    """Return the names of the fields in which the state of two runs differs, such as `var:torque`; in order."""
    one, other = encode(recorded), encode(repeated)
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))
