"""The tags of the gateway itself as data items: each has its unit, or the names of its two states, and a description.

Their samples are numbers, as rules compare them: a flag is 0 or 1, and a Boolean here.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from asyncua import ua
from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.opcua.tag_items import TagItem, item_of
from edge.ports.tag import TagDefinition, TagDefinitions, matches

_COUNT: Final = "C62"
"""The unit one of UNECE Recommendation 20."""


class _Number(Struct, frozen=True):
    """A tag that measures or counts: its unit, and the end of its range from 0 where it has one."""

    description: str
    unit: str = _COUNT
    high: float | None = None


class _Flag(Struct, frozen=True):
    """A tag that is 0 or 1, and what clients show for both."""

    description: str
    true: str
    false: str


_TAGS: Final[Mapping[str, _Number | _Flag]] = {
    "equipment.*.connected": _Flag("Whether the equipment is connected.", "connected", "offline"),
    "equipment.*.maybe_active": _Flag(
        "Whether the equipment has not confirmed a stop: its tool may be active.", "maybe active", "stopped"
    ),
    "equipment.*.fault": _Flag("Whether the equipment is connected and cannot work.", "fault", "no fault"),
    "equipment.*.answers_flooded": _Flag(
        "Whether the equipment sends more answers than the gateway takes.", "flooded", "not flooded"
    ),
    "equipment.*.skipped_results": _Number(
        "Results and messages beyond a size limit since the last command that the equipment carried out."
    ),
    "equipment.*.lost_traces": _Number("Traces and files of the equipment that were lost since one was stored."),
    "equipment.*.unknown_outcomes": _Number(
        "Commands to the equipment whose outcome the recipe or a person has yet to decide."
    ),
    "gateway.faulty_recipes": _Number("Stored recipes at which a job can stand still."),
    "gateway.jobs_await_person": _Number("Jobs with a failed action that a person may retry or skip."),
    "gateway.archive_failing": _Flag("Whether ended jobs cannot be archived.", "failing", "archiving"),
    "gateway.jobs_lost_to_archive": _Number("Jobs that left the store before they could be archived."),
    "gateway.failing_tasks": _Number("Background tasks that a defect stopped and that are retried."),
    "gateway.store_fullness": _Number("Used part of the memory that the store may take.", high=1),
    "gateway.store_repairs": _Number("Damaged files of the store that are kept after a repair."),
    "gateway.marks_fullness": _Number("Used part of the marks against repeated messages.", high=1),
    "gateway.marks_of.*": _Number("Used part of the marks against repeated messages of one sender.", high=1),
    "gateway.primary_unconfirmed": _Flag(
        "Whether the primary of the store is not confirmed by its sentinels.", "unconfirmed", "confirmed"
    ),
    "gateway.sentinels_away": _Number("Sentinels that cannot be reached."),
    "gateway.store_replicas_away": _Number("Replicas of the store that cannot be reached."),
    "gateway.store_replicas_lagging": _Number("Replicas of the store that lag behind."),
    "gateway.store_without_file": _Number("Servers of the store that keep nothing in a file."),
    "gateway.clocks_differing": _Number("Servers of the store whose clock differs."),
    "gateway.clock_synchronised": _Flag("Whether the clock is synchronised.", "synchronised", "free-running"),
    "gateway.clock_offset_ms": _Number("Difference of the clock from its time server.", "C26"),
    "gateway.results_uncollected": _Number("Ended jobs whose results the MES has not confirmed in time."),
    "gateway.certificates_expiring": _Number("Certificates that expire soon."),
    "gateway.consumer_lag": _Number("Samples that are not evaluated yet."),
    "gateway.memory_mib": _Number("Largest memory of the process since its start.", "E63"),
    "gateway.disk_fullness": _Number("Used part of the disk.", high=1),
    "gateway.cpu_temperature": _Number("Temperature of the processor.", "CEL"),
    "gateway.undervoltage": _Flag("Whether the supply was too low.", "too low", "sufficient"),
    "gateway.flash_wear": _Number("Used part of the life of the flash memory, in steps of a tenth."),
}
"""By pattern."""


def tag_item(definitions: TagDefinitions, tag: str) -> TagItem:
    """Return the item of a tag: by its definition, else that of a tag of the gateway."""
    definition = definitions.find(tag)
    return item_of(definition) if definition is not None else _own_item(tag.partition("[")[0])


@lru_cache(maxsize=1024)
def _own_item(tag: str) -> TagItem:
    own_tag = next((own_tag for pattern, own_tag in _TAGS.items() if matches(pattern, tag)), None)
    match own_tag:
        case None:
            return item_of(None)
        case _Number(description, unit, high):
            low = None if high is None else 0
            return item_of(TagDefinition(tag, unit=unit, type="number", low=low, high=high, description=description))
        case _Flag(description, true, false):
            item = item_of(TagDefinition(tag, type="truth value", description=description))
            texts = {"TrueState": _text(true), "FalseState": _text(false)}
            return replace(item, properties={**item.properties, **texts}, convert=_as_flag)


def _as_flag(value: Any) -> Any:
    """Return the sample of a flag, 0 or 1, as Boolean."""
    return bool(value) if type(value) in {int, float} and value in {0, 1} else value


def _text(text: str) -> ua.Variant:
    return ua.Variant(ua.LocalizedText(text, "en"), ua.VariantType.LocalizedText)
