"""What station files describe: objects of a store, each with its content, and how files and store differ."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from edge.app.documents import Described
from edge.app.features import document_kinds
from edge.foundation.text import Text, join_texts
from edge.model.acceptance import ResourceKind

_Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]


class ScopeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a scope may use, as a file of the site has it.

    Example: {"max_downloadable_job_orders": 50, "equipment": ["wrench-3"], "personnel": ["anna"]}
    """

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


class ObjectKind(StrEnum):
    """The kinds of objects of the core, in the order of applying: a Work Master comes after its resources."""

    EQUIPMENT = ResourceKind.EQUIPMENT.value
    MATERIAL_CLASS = ResourceKind.MATERIAL_CLASS.value
    MATERIAL_DEFINITION = ResourceKind.MATERIAL_DEFINITION.value
    PERSONNEL = ResourceKind.PERSONNEL.value
    PHYSICAL_ASSET = ResourceKind.PHYSICAL_ASSET.value
    JOB_ACCEPTANCE = "jobacceptance"
    WORK_MASTER = "workmaster"


@cache
def _order() -> Mapping[str, int]:
    """Return the place of each kind: the documents of features are applied after the objects of the core."""
    return {kind: number for number, kind in enumerate((*ObjectKind, *document_kinds()))}


class StationObject(Struct, frozen=True):
    """The identity of an object: documents of features have no scope, the limit of a scope has no id."""

    kind: str
    scope: str
    id: str

    @property
    def place(self) -> tuple[int, str, str]:
        """The place in the order of applying."""
        return _order()[self.kind], self.scope, self.id

    def __str__(self) -> str:
        """Return kind and name as people read them."""
        return f"{self.kind} {'/'.join(filter(None, (self.scope, self.id)))}"


Objects = Mapping[StationObject, Described]


class ObjectChange(StrEnum):
    """How the store differs from the files in an object."""

    MISSING = "missing"
    CHANGED = "changed"
    EXTRA = "extra"


class ObjectDifference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object that is missing in the store, changed there, or not in the files."""

    change: ObjectChange
    kind: str
    scope: str = ""
    id: str = ""
    file: str = ""

    @property
    def subject(self) -> StationObject:
        """The identity of the object."""
        return StationObject(self.kind, self.scope, self.id)


def compare(files: Objects, stored: Objects) -> tuple[ObjectDifference, ...]:
    """Return how a store differs from files, in the order of applying; a state such as stopped is not compared."""
    found = [
        *((ObjectChange.MISSING, file) for file in files.keys() - stored.keys()),
        *(
            (ObjectChange.CHANGED, file)
            for file in files.keys() & stored.keys()
            if not _same(files[file], stored[file])
        ),
        *((ObjectChange.EXTRA, file) for file in stored.keys() - files.keys()),
    ]
    return tuple(
        ObjectDifference(
            change=change,
            kind=station_object.kind,
            scope=station_object.scope,
            id=station_object.id,
            file=files[station_object].file,
        )
        if station_object in files
        else ObjectDifference(change=change, kind=station_object.kind, scope=station_object.scope, id=station_object.id)
        for change, station_object in sorted(found, key=lambda pair: pair[1].place)
    )


def summary(differences: Iterable[ObjectDifference]) -> str | Text:
    """Return the numbers of differences in words; "" without any."""
    counts = dict.fromkeys(ObjectChange, 0)
    for difference in differences:
        counts[difference.change] += 1
    texts = [_count_text(change, count) for change, count in counts.items() if count]
    return join_texts(", ", texts) if texts else ""


def _count_text(change: ObjectChange, count: int) -> Text:
    match change:
        case ObjectChange.MISSING:
            return Text.of("{count} missing", count=count)
        case ObjectChange.CHANGED:
            return Text.of("{count} changed", count=count)
        case ObjectChange.EXTRA:
            return Text.of("{count} not in the files", count=count)


def audit_action(object_difference: ObjectDifference) -> str:
    """Return the action of the audit record of a difference that was applied."""
    return f"station {'delete' if object_difference.change is ObjectChange.EXTRA else 'put'} {object_difference.kind}"


def audit_subject(object_difference: ObjectDifference) -> str:
    """Return the subject of that record."""
    return "/".join(filter(None, (object_difference.scope, object_difference.id)))


def _same(one: Described, other: Described) -> bool:
    return bool(_typed(one.content) == _typed(other.content))


def _typed(value: Any) -> Any:
    """Return a value in which true and 1 differ, as they do in JSON."""
    match value:
        case bool():
            return ("truth value", value)
        case dict():
            return {name: _typed(item) for name, item in value.items()}
        case list() | tuple():
            return [_typed(item) for item in value]
        case _:
            return value
