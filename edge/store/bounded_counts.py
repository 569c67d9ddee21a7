"""Counts the marks of repeated messages, which are kept in bounded number."""

from collections.abc import Mapping
from typing import Final

from edge.store.bounds import BoundedCount
from edge.store.bulk_reads import escape_pattern
from edge.store.client import Store

_BATCH: Final = 1000
_BATCHES: Final = 20


class MarkCounter:
    """Counts the marks by their keys, a part at each call, so that the server can serve other clients meanwhile."""

    def __init__(self, batches: int = _BATCHES) -> None:
        self._batches = batches
        self._cursor = "0"
        self._seen = 0
        self._counted = 0

    async def count(self, store: Store) -> int:
        """Read the next keys; return the number of marks of the last complete pass, or of this one if it is higher."""
        keys = store.keys
        marks = keys.cededupe(""), keys.transdedupe(""), keys.joborder_tombstone("")
        pattern = f"{escape_pattern(keys.prefix)}:[ct]*e:*"
        for _ in range(self._batches):
            self._cursor, found = await store.execute("SCAN", self._cursor, "MATCH", pattern, "COUNT", _BATCH)
            self._seen += sum(key.startswith(marks) for key in found)
            if str(self._cursor) == "0":
                self._counted, self._seen = self._seen, 0
                break
        return max(self._counted, self._seen)

    def reset(self) -> None:
        """Forget the passes: the server counts few keys."""
        self._cursor, self._seen, self._counted = "0", 0, 0


async def count_marks(store: Store, info: Mapping[str, str], limit: int, counter: MarkCounter) -> BoundedCount:
    """Return the number of marks, by the fields of INFO. Raises Unavailable.

    The server itself counts the keys with a lifetime, which marks and few others have. Only while these reach half of
    the limit are the marks counted one by one.
    """
    marks = BoundedCount(_expiring(info, store.database), limit)
    if marks.is_nearly_full:
        return BoundedCount(await counter.count(store), limit)
    counter.reset()
    return marks


def _expiring(info: Mapping[str, str], database: int) -> int:
    """Return the number of keys with a lifetime, of a field like `keys=8,expires=2,avg_ttl=9`."""
    found = dict(text.split("=") for text in info.get(f"db{database}", "expires=0").split(","))
    return int(found["expires"])
