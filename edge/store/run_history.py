"""The history of a run: one compact record of each decision, in a stream that lives as long as its job."""

from edge.sfc.history import StoredDecision
from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys
from edge.store.stream import entries

MOST_DECISIONS = 10_000
"""The number of decisions that the history of a run keeps, unless a setting says otherwise."""
_TRIM_INTERVAL = 256
"""The oldest decisions go together, at most so many at a time: each one would cost a command of its own."""
_INSTANT = 10**12
"""From here on the second part of an id is an instant since the Unix epoch, else the milliseconds since the start."""


def append(keys: Keys, job_id: str, record: StoredDecision, started_at: int, most: int) -> Commit:
    """Append a record of a run; beyond `most` records the oldest go, a tenth of them at most."""
    key, after = keys.sfc_history(job_id), record.at - started_at
    # The clock may have been set back before the start of the run.
    second = after if 0 <= after < _INSTANT else record.at
    added = operation("XADD", key, f"{record.number}-{second}", record.name, record.text)
    beyond, at_a_time = record.number - most, max(1, min(_TRIM_INTERVAL, most // 10))
    if beyond > 0 and (beyond - 1) % at_a_time == 0:
        return join((added, operation("XTRIM", key, "MAXLEN", most - at_a_time + 1)))
    return added


async def load(store: Store, job_id: str, started_at: int, newest: int = 0) -> list[StoredDecision]:
    """Return the `newest` records of the decisions about a job that was started at an instant, the oldest first.

    With 0 all that are kept.
    """
    bound = ("COUNT", newest) if newest else ()
    found = []
    for entry in entries(await store.execute("XREVRANGE", store.keys.sfc_history(job_id), "+", "-", *bound)):
        number, _, second = entry.entry_id.partition("-")
        at = int(second) if int(second) >= _INSTANT else started_at + int(second)
        ((name, text),) = entry.fields.items()
        found.append(StoredDecision(int(number), at, name, text))
    return found[::-1]
