"""The samples of the tags in a trial, and the answers to queries about them."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from edge.features.flows.nodes.read import LatestValue, SampleWindow
from edge.ports.sample_lines import Quality, Sample


class SampleHistory(Struct, frozen=True):
    """The samples that are not bad, by tag, in order of time."""

    samples: dict[str, list[Sample]]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "SampleHistory":
        """Return the history of samples that come in order of time; NaN and infinity are unknown and left out."""
        found: dict[str, list[Sample]] = {}
        for sample in samples:
            if is_usable(sample):
                found.setdefault(sample.tag, []).append(sample)
        return cls(found)

    def answer(self, query: LatestValue | SampleWindow) -> Any:
        """Return the answer to a query."""
        samples = self.samples.get(query.tag, [])
        end = bisect_right(samples, query.until_ms, key=_at)
        match query:
            case LatestValue():
                return samples[end - 1].value if end else None
            case SampleWindow(after_ms=after_ms, with_time=with_time):
                window = samples[bisect_right(samples, after_ms, key=_at) : end]
                return [_as_json(sample) for sample in window] if with_time else [sample.value for sample in window]


def _at(sample: Sample) -> int:
    return sample.at


def is_usable(sample: Sample) -> bool:
    """Return whether a sample is not bad and its value is known: neither NaN nor infinity."""
    value = sample.value
    return sample.quality is not Quality.BAD and (not isinstance(value, float) or math.isfinite(value))


def _as_json(sample: Sample) -> dict[str, Any]:
    return {"at": sample.at, "value": sample.value, "quality": sample.quality.value}
