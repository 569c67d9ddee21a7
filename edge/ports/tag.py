"""Definitions of tags as a file of the site has them, patterns of tags, and how samples are judged by definitions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from edge.model.user import Role
from edge.ports.sample_lines import Quality, Sample
from edge.ports.sample_value import as_number, type_name

TagType: TypeAlias = Literal["number", "text", "truth value"]

ReadRole: TypeAlias = Literal["observer", "operator", "engineer"]

MAX_TAGS: Final = 10_000


class TagDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known about a tag.

    Example: {"tag": "sensors.oven", "unit": "CEL", "type": "number", "low": 0, "high": 300, "description": "Oven"}
    """

    tag: Annotated[str, Meta(min_length=1, max_length=200, description="Name of the tag.")]
    unit: Annotated[
        str,
        Meta(
            pattern="^$|^[0-9A-Z]{2,3}$",
            description="Engineering unit: the code of UNECE Recommendation 20, as in CEL, NU or C62.",
        ),
    ] = ""
    type: Annotated[
        TagType | None, Meta(description="Type of its values; a sample of another type is refused. Without it, any.")
    ] = None
    low: Annotated[
        float | None, Meta(description="Least value of its range; the quality of a lower one is uncertain.")
    ] = None
    high: Annotated[
        float | None, Meta(description="Largest value of its range; the quality of a higher one is uncertain.")
    ] = None
    description: Annotated[str, Meta(max_length=500, description="What it is, for people.")] = ""
    definition: Annotated[
        str, Meta(max_length=500, description="How its values are made, for people: a formula or an address.")
    ] = ""
    role: Annotated[
        ReadRole, Meta(description="Lowest role that reads its values over OPC UA, the station page and the HTTP API.")
    ] = "observer"

    def may_be_read_by(self, role: Role) -> bool:
        """Return whether a person of a role may read its values."""
        return role >= Role[self.role.upper()]


def tags_schema() -> dict[str, Any]:
    """Return the JSON Schema of a list of definitions."""
    schema = msgspec.json.schema(tuple[TagDefinition, ...])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "tags", **schema}


WILDCARD = "*"


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern may match more than one name."""
    return WILDCARD in pattern


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern."""
    return name == pattern if WILDCARD not in pattern else _compiled(pattern).fullmatch(name) is not None


def matches_any(patterns: Iterable[str], name: str) -> bool:
    """Return whether a name matches one of several patterns."""
    return any(matches(pattern, name) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Adjacent wildcards mean one; atomic groups keep a pattern of many wildcards from backtracking for ever.
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1])
    return re.compile(f"{parts[0]}{middle}.*{parts[-1]}", re.DOTALL)


def parse_definitions(data: object) -> tuple[tuple[TagDefinition, ...], tuple[str, ...]]:
    """Return the definitions of a list and all faults; the definitions are complete only when there is no fault."""
    if not isinstance(data, list):
        return (), ("tags must be a list of objects",)
    if len(data) > MAX_TAGS:
        return (), (f"there are {len(data)} tags; at most {MAX_TAGS} are possible",)
    tag_definitions: list[TagDefinition] = []
    faults: list[str] = []
    for number, item in enumerate(data):
        name = item.get("tag") if isinstance(item, dict) else None
        place = f"tag {name!r}" if isinstance(name, str) and name else f"tags[{number}]"
        try:
            definition = msgspec.convert(item, TagDefinition)
        except msgspec.ValidationError as error:
            faults.append(f"{place}: {error}")
            continue
        if definition.low is not None and definition.high is not None and definition.low >= definition.high:
            faults.append(f"{place}: low ({definition.low:g}) and high ({definition.high:g}) must be in order")
        if definition.type not in {None, "number"} and not (definition.low is None and definition.high is None):
            faults.append(f"{place}: only a number has a range")
        tag_definitions.append(definition)
    names = Counter(tag_definition.tag for tag_definition in tag_definitions)
    faults += [f"tag {name!r}: {times} definitions have this name" for name, times in names.items() if times > 1]
    return tuple(tag_definitions), tuple(faults)


def decode_definitions(texts: Iterable[str]) -> Iterator[TagDefinition]:
    """Yield the definitions of JSON texts that were checked before; one of a newer release is left out."""
    for text in texts:
        with suppress(msgspec.DecodeError):  # a ValidationError is one, too
            yield msgspec.json.decode(text, type=TagDefinition)


class TagDefinitions:
    """The definitions by tag."""

    def __init__(self, definitions: Iterable[TagDefinition] = ()) -> None:
        self._own = {definition.tag: definition for definition in definitions}
        self._known = dict(self._own)

    def use_stored(self, definitions: Iterable[TagDefinition]) -> None:
        """Apply the definitions of a store over the own ones, by tag."""
        self._known = self._own | {definition.tag: definition for definition in definitions}

    @property
    def known(self) -> Mapping[str, TagDefinition]:
        """Return all definitions by tag; another mapping after a change."""
        return self._known

    def find(self, tag: str) -> TagDefinition | None:
        """Return the definition of a tag, or of the one whose name stands before brackets; None without one.

        `equipment.wrench.connected[press-2]` is the tag of another gateway.
        """
        while (definition := self._known.get(tag)) is None and "[" in tag:
            tag = tag.rpartition("[")[0]
        return definition

    def may_read(self, tag: str, role: Role) -> bool:
        """Return whether a person of a role may read the values of a tag; every one without a definition."""
        definition = self.find(tag)
        return definition is None or definition.may_be_read_by(role)

    def hidden_from(self, role: Role) -> Iterator[str]:
        """Yield the defined tags whose values a person of a role may not read."""
        return (tag for tag, definition in self._known.items() if not definition.may_be_read_by(role))

    def judge(self, sample: Sample) -> Sample | str:
        """Return a sample, as uncertain when it is out of range; the reason for one whose type is another."""
        tag_definition = self._known.get(sample.tag)
        if tag_definition is None or sample.value is None or sample.quality is Quality.BAD:
            return sample
        if tag_definition.type is not None and not _has_type(sample.value, tag_definition.type):
            return f"its value is not a {tag_definition.type}, but {type(sample.value).__name__}"
        number = as_number(sample.value)
        if number is not None and not (tag_definition.low is None or tag_definition.low <= number):
            return replace(sample, quality=Quality.UNCERTAIN)
        if number is not None and not (tag_definition.high is None or number <= tag_definition.high):
            return replace(sample, quality=Quality.UNCERTAIN)
        return sample


def _has_type(value: object, expected: TagType) -> bool:
    return type_name(value) == expected
