"""What conditions consist of (OPC 10000-9): a table of the paths, types and values of their variables.

Events, nodes and history read the same table. A feature adds the members of its types to those of every condition.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from asyncua import ua
from msgspec import Struct

from edge.foundation.text import Text
from edge.opcua.access import session_text
from edge.uaserver.own_types import instant

_I: Final = ua.ObjectIds
T: Final = ua.VariantType
LONGEST_NAME: Final = 500
"""Characters of a ConditionName (a name has at most 512: OPC 10000-3, 8.3)."""


class ConditionMember(Struct, frozen=True):
    """A variable of a condition: its path, the type of its value, its variable type, and its value in a view."""

    path: str
    kind: ua.VariantType
    value: Callable[[Any], Any]
    data_type: int
    variable_type: int = _I.PropertyType
    is_array: bool = False
    namespace: int = 0
    """The namespace of its browse name."""


class ConditionShape(Struct, frozen=True, eq=False):
    """What conditions of a type consist of: members by path, objects with their types, and methods by object.

    The empty path is the condition. All conditions share the method nodes of the types.
    """

    type_id: ua.NodeId
    members: Mapping[str, ConditionMember]
    objects: Mapping[str, int] = MappingProxyType({})
    methods: Mapping[str, tuple[ua.NodeId, ...]] = MappingProxyType({})


class ConditionFields(Mapping[str, ua.Variant]):
    """The fields of the event about a condition by path; each is made when a filter selects it."""

    def __init__(self, members: Mapping[str, ConditionMember], view: Any) -> None:
        self._view = view
        self._members = members

    def __getitem__(self, path: str) -> ua.Variant:
        return variant_of(self._members[path], self._view)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def variant_of(member: ConditionMember, view: Any) -> ua.Variant:
    """Return the value of a member."""
    value = member.value(view)
    if isinstance(value, ua.Variant):
        return value
    return ua.Variant(value, T.Null if value is None else member.kind, is_array=member.is_array or None)


def table_of(members: Iterable[ConditionMember]) -> Mapping[str, ConditionMember]:
    """Return members by path; a later one replaces an earlier one."""
    return MappingProxyType({member.path: member for member in members})


def property_member(
    path: str,
    kind: ua.VariantType,
    value: Callable[[Any], Any],
    data_type: int = 0,
    *,
    is_array: bool = False,
    namespace: int = 0,
) -> ConditionMember:
    """Return a property; without `data_type` it has that of its value."""
    return ConditionMember(path, kind, value, data_type or kind.value, is_array=is_array, namespace=namespace)


def two_states(
    name: str, texts: tuple[Text, Text], is_true: Callable[[Any], bool], at: Callable[[Any], Any]
) -> Iterator[ConditionMember]:
    """Yield the members of a variable with two states; `texts` are those of true and false."""

    def text(view: Any) -> ua.LocalizedText:
        return session_text(texts[not is_true(view)])

    yield ConditionMember(name, T.LocalizedText, text, _I.LocalizedText, _I.TwoStateVariableType)
    yield property_member(f"{name}/Id", T.Boolean, is_true)
    yield property_member(f"{name}/EffectiveDisplayName", T.LocalizedText, text)
    yield property_member(f"{name}/TransitionTime", T.DateTime, at, _I.UtcTime)


def noted(
    name: str, kind: ua.VariantType, value: Callable[[Any], Any], at: Callable[[Any], Any]
) -> Iterator[ConditionMember]:
    """Yield the members of a variable whose value has an instant."""
    yield ConditionMember(name, kind, value, kind.value, _I.ConditionVariableType)
    yield property_member(f"{name}/SourceTimestamp", T.DateTime, at, _I.UtcTime)


class ConditionBase(Protocol):
    """What every condition has; instants are milliseconds since the epoch."""

    @property
    def event_id(self) -> bytes:
        """The id of the event with this state, the same on every instance of a store."""

    @property
    def type_id(self) -> ua.NodeId:
        """The type of the condition."""

    @property
    def class_id(self) -> int:
        """The class of the condition (OPC 10000-9, 5.9), of namespace 0."""

    @property
    def name(self) -> str:
        """The ConditionName."""

    @property
    def source(self) -> ua.NodeId:
        """The node that has the condition."""

    @property
    def source_name(self) -> str:
        """The name of the source."""

    @property
    def branch_id(self) -> ua.NodeId:
        """The id of a branch; null for the condition itself."""

    @property
    def message(self) -> ua.LocalizedText:
        """Its text."""

    @property
    def severity(self) -> int:
        """Its severity, 1 to 1000."""

    @property
    def changed_at(self) -> int:
        """When it reached this state."""

    @property
    def is_retained(self) -> bool:
        """Whether clients must show it (OPC 10000-9, 5.5.2: Retain)."""

    @property
    def is_enabled(self) -> bool:
        """Whether it is enabled."""

    @property
    def by(self) -> str:
        """The person who changed it last; empty without one."""

    @property
    def comment(self) -> str:
        """The last comment."""

    @property
    def quality(self) -> ua.StatusCode:
        """The quality of what it is about."""

    @property
    def last_severity(self) -> int:
        """The severity before; 0 when it was never another."""

    def instant_of(self, state: str) -> int:
        """Return when one of its states changed: `enabled`, `severity`, `comment` or one of its own."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def receive_time() -> ua.Variant:
    """Return the instant of now."""
    return instant(_now_ms())


def _class_name(view: ConditionBase) -> ua.LocalizedText:
    return ua.LocalizedText(ua.ObjectIdNames[view.class_id].removesuffix("Type"), "en")


BASE_MEMBERS: Final[tuple[ConditionMember, ...]] = (
    property_member("EventId", T.ByteString, lambda v: v.event_id),
    property_member("EventType", T.NodeId, lambda v: v.type_id),
    property_member("SourceNode", T.NodeId, lambda v: v.source),
    property_member("SourceName", T.String, lambda v: v.source_name),
    property_member("Time", T.DateTime, lambda v: instant(v.changed_at), _I.UtcTime),
    property_member("ReceiveTime", T.DateTime, lambda _: receive_time(), _I.UtcTime),
    property_member("Message", T.LocalizedText, lambda v: v.message),
    property_member("Severity", T.UInt16, lambda v: v.severity),
    property_member("ConditionClassId", T.NodeId, lambda v: ua.NodeId(v.class_id)),
    property_member("ConditionClassName", T.LocalizedText, _class_name),
    property_member("ConditionName", T.String, lambda v: v.name[:LONGEST_NAME]),
    property_member("BranchId", T.NodeId, lambda v: v.branch_id),
    property_member("Retain", T.Boolean, lambda v: v.is_retained),
    property_member("ClientUserId", T.String, lambda v: v.by),
    *noted("Quality", T.StatusCode, lambda v: v.quality, lambda v: instant(v.changed_at)),
    *noted("LastSeverity", T.UInt16, lambda v: v.last_severity, lambda v: instant(v.instant_of("severity"))),
    *noted(
        "Comment",
        T.LocalizedText,
        lambda v: ua.LocalizedText(v.comment, "en"),
        lambda v: instant(v.instant_of("comment")),
    ),
    *two_states(
        "EnabledState",
        (Text.of("Enabled"), Text.of("Disabled")),
        lambda v: v.is_enabled,
        lambda v: instant(v.instant_of("enabled")),
    ),
)
"""The members of every condition (OPC 10000-9, 5.5.2), of a view that is a `ConditionBase`."""
