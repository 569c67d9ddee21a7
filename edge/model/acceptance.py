"""Validate job orders: their form, their size, and what the MES allows a station to use."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated

import msgspec

from edge.foundation.text import Text
from edge.model.isa95 import JobOrder

MAX_ID_LENGTH = 255
RESERVED_ID_STARTS = ("list:", "open:", "startable:", "changes:")
"""Prefixes of our own keys (`joborder:list:…`): an id with such a prefix would collide with them."""

MAX_NESTING = 16
"""Levels of a structure. An OPC UA stack cannot encode about 200 levels, nor any list that contains them."""
MAX_TEXT_LENGTH = 65_535
MAX_BYTES = 256 * 1024
"""The longest text and the largest structure: OPC UA clients read hundreds of them in one list."""

_INT16 = range(-(2**15), 2**15)


class ResourceKind(StrEnum):
    """The kinds of resources that are allowed by id; the value is the last word of the configuration event's type."""

    EQUIPMENT = "equipment"
    MATERIAL_CLASS = "materialclass"
    MATERIAL_DEFINITION = "materialdefinition"
    PERSONNEL = "personnel"
    PHYSICAL_ASSET = "physicalasset"


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What the MES allows a scope to use, or the part of it that an order names.

    `max_job_orders` is None when the MES set no limit.
    """

    work_masters: frozenset[str] = frozenset()
    resources: Mapping[ResourceKind, frozenset[str]] = MappingProxyType({})
    max_job_orders: int | None = None


class JobAcceptance(msgspec.Struct, frozen=True):
    """The payload of `jobacceptance`: the most job orders of a scope that have not ended, a UInt16.

    Example: {"max_downloadable_job_orders": 50}
    """

    max_job_orders: Annotated[int, msgspec.Meta(ge=0, le=65535)] = msgspec.field(name="max_downloadable_job_orders")


def validate_id(what: str | Text, text: str) -> Iterator[Text]:
    """Yield the faults of the id of a job order or work master."""
    if not text:
        yield Text.of("{what} is empty", what=what)
    elif len(text) > MAX_ID_LENGTH:
        yield Text.of("{what} is longer than {most} characters", what=what, most=MAX_ID_LENGTH)
    elif not text.isprintable():
        yield Text.of("{what} holds a character that cannot be printed", what=what)
    elif text.startswith(RESERVED_ID_STARTS):
        yield Text.of("{what} may not begin with {starts}", what=what, starts=", ".join(RESERVED_ID_STARTS))


def validate_order(order: JobOrder) -> list[Text]:
    """Return the faults of an order that no station can accept."""
    faults = list(validate_id("JobOrderID", order.job_order_id))
    if order.priority is not None and order.priority not in _INT16:
        faults.append(Text("Priority is not an Int16"))
    return [*faults, *validate_size(Text.of("the job order"), order)]


def validate_size(what: str | Text, data: msgspec.Struct) -> Iterator[Text]:
    """Yield the faults of a structure that is too large to be stored and listed with a thousand others."""
    level: list[object] = [data]
    for _ in range(MAX_NESTING + 1):
        inner: list[object] = []
        for value in level:
            if isinstance(value, str) and len(value) > MAX_TEXT_LENGTH:
                yield Text.of("{what} holds a text longer than {most} characters", what=what, most=MAX_TEXT_LENGTH)
                return
            inner.extend(_children(value))
        level = inner
    if any(isinstance(item, msgspec.Struct | dict | list) for item in level):
        yield Text.of("{what} is nested deeper than {most} levels", what=what, most=MAX_NESTING)
    elif len(msgspec.json.encode(data)) > MAX_BYTES:
        yield Text.of("{what} is larger than {most} bytes of JSON", what=what, most=MAX_BYTES)


def _children(value: object) -> Iterator[object]:
    """Yield the values one level below a value; an array within a structure is not a level."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            field = getattr(value, name)
            if isinstance(field, tuple):
                yield from field
            else:
                yield field
    elif isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value


def refusal_reasons(order: JobOrder, allowed: Allowed) -> list[Text]:
    """Return the reasons to refuse an order: the MES must have allowed every resource that it names."""
    named: list[tuple[str, frozenset[str], Iterable[str]]] = [
        ("Work Master", allowed.work_masters, named_work_masters(order))
    ]
    for kind, ids in named_resources(order).items():
        named.append((kind.value, allowed.resources.get(kind, frozenset()), ids))
    return [
        Text.of("{what} {id!r} is not known to this station", what=what, id=identifier)
        for what, known, ids in named
        for identifier in ids
        if identifier not in known
    ]


def named_work_masters(order: JobOrder) -> list[str]:
    """Return the ids of the Work Masters that an order names."""
    return [work_master.id for work_master in order.work_master_id or ()]


def named_resources(order: JobOrder) -> dict[ResourceKind, list[str]]:
    """Return the ids of the resources that an order names, of every kind."""
    materials = order.material_requirements or ()
    return {
        ResourceKind.EQUIPMENT: [requirement.id for requirement in order.equipment_requirements or ()],
        ResourceKind.MATERIAL_CLASS: [
            material.material_class_id for material in materials if material.material_class_id
        ],
        ResourceKind.MATERIAL_DEFINITION: [
            material.material_definition_id for material in materials if material.material_definition_id
        ],
        ResourceKind.PERSONNEL: [requirement.id for requirement in order.personnel_requirements or ()],
        ResourceKind.PHYSICAL_ASSET: [requirement.id for requirement in order.physical_asset_requirements or ()],
    }
