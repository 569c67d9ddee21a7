"""The file `station.json` of a scope among the station files: the ids that it may use, and its limit of open jobs."""

from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from edge.model.acceptance import ResourceKind

_Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]


class ScopeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a scope may use, as a file of the site has it."""

    max_downloadable_job_orders: (
        Annotated[
            int, Meta(ge=0, le=65_535, description="Most open jobs of the scope; without it the limit of the settings.")
        ]
        | UnsetType
    ) = UNSET
    equipment: Annotated[tuple[_Id, ...], Meta(description="Ids of equipment that job orders may name.")] = ()
    material_classes: Annotated[tuple[_Id, ...], Meta(description="Ids of material classes.")] = ()
    material_definitions: Annotated[tuple[_Id, ...], Meta(description="Ids of material definitions.")] = ()
    personnel: Annotated[tuple[_Id, ...], Meta(description="Ids of personnel.")] = ()
    physical_assets: Annotated[tuple[_Id, ...], Meta(description="Ids of physical assets.")] = ()


LIMIT: Final = "max_downloadable_job_orders"
LISTS: Final = MappingProxyType(
    {
        "equipment": ResourceKind.EQUIPMENT,
        "material_classes": ResourceKind.MATERIAL_CLASS,
        "material_definitions": ResourceKind.MATERIAL_DEFINITION,
        "personnel": ResourceKind.PERSONNEL,
        "physical_assets": ResourceKind.PHYSICAL_ASSET,
    }
)
"""List of the file -> kind of its resources."""


def station_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file."""
    schema = msgspec.json.schema(ScopeFile)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "station", **schema}
