"""Definitions of tags as a file of the site has them: unit, type, range, description; and their JSON Schema."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

TagType: TypeAlias = Literal["number", "text", "truth value"]

MAX_TAGS: Final = 10_000


class TagDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known about a tag."""

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


def tags_schema() -> dict[str, Any]:
    """Return the JSON Schema of a list of definitions."""
    schema = msgspec.json.schema(tuple[TagDefinition, ...])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "tags", **schema}
