"""The public form of a tag."""

from typing import Any

from msgspec import Struct

from edge.model.engineering_unit import symbol_of
from edge.model.instant import Instant, rfc3339
from edge.model.json_value import short_value
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition


class PublicTag(Struct, frozen=True, kw_only=True):
    """The last sample of a tag, with the definition of the tag, as `--json` and the HTTP API state them.

    `value` is a number, a truth value, or a text of at most 200 characters; an object or array is JSON as a text.
    `unit` is a symbol, `unit_code` that of UNECE Recommendation 20; both are empty without a definition.
    """

    tag: str
    value: Any
    quality: str
    at: Instant
    process: str | None
    unit: str
    unit_code: str
    low: float | None
    high: float | None
    description: str


_UNDEFINED = TagDefinition("")


def public_tag(sample: Sample, definition: TagDefinition | None = None) -> PublicTag:
    """Return the public form of a tag by its last sample."""
    defined = definition or _UNDEFINED
    return PublicTag(
        tag=sample.tag,
        value=short_value(sample.value),
        quality=sample.quality.value,
        at=rfc3339(sample.at),
        process=sample.process,
        unit=symbol_of(defined.unit) if defined.unit else "",
        unit_code=defined.unit,
        low=defined.low,
        high=defined.high,
        description=defined.description,
    )
