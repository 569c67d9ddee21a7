"""The tags as variables: their last samples, and whether their history can be read.

    Gateway / Tags / <tag>

The nodes are created when a client asks for them; the values are those of the store, saved every few seconds. Their
types and properties are those of the definitions of the tags (`tag_items`).
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.features.telemetry.opcua.gateway_items import tag_item
from edge.features.telemetry.opcua.history_values import STATUS_OF
from edge.features.telemetry.opcua.tag_items import UNDEFINED, TagItem, value_of
from edge.model.instant import utc
from edge.opcua.access import Caller
from edge.opcua.server_channel import ServerChannel
from edge.ports.sample_lines import Sample, parse_line
from edge.ports.tag import TagDefinitions
from edge.uaserver.live_list import notify_all
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import (
    HAS_COMPONENT,
    make_reference,
    object_attributes,
    reference_to,
    reference_to_type,
    scalar,
    variable_attributes,
)
from edge.uaserver.own_types import type_name

FOLDER: Final = "Tags"
_A: Final = ua.AttributeIds
T: Final = ua.VariantType
_READ: Final = 1 << ua.AccessLevel.CurrentRead
_HISTORY: Final = 1 << ua.AccessLevel.HistoryRead
_FOLDER_TYPE: Final = ua.NodeId(ua.ObjectIds.FolderType)
_PROPERTY_TYPE: Final = ua.NodeId(ua.ObjectIds.PropertyType)
_HAS_PROPERTY: Final = ua.NodeId(ua.ObjectIds.HasProperty)
_PROPERTY: Final = "#"
_DESCRIPTIONS: Final = {
    "Definition": "How the values are made.",
    "EngineeringUnits": "The unit of the values.",
    "EURange": "The range of the values; the quality of others is uncertain.",
    "TrueState": "What true is called.",
    "FalseState": "What false is called.",
}
_MOST_AWAITED: Final = 1_000
_NO_SAMPLE: Final = ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadWaitingForInitialData))


class TagNodes:
    """The folder of tags below an object; `has_history` is whether samples are kept."""

    def __init__(self, parent: NodeData, definitions: TagDefinitions, *, has_history: bool) -> None:
        self._definitions = definitions
        self._defined = definitions.known
        """The definitions that the references of the folder show."""
        self._has_history = has_history
        self._texts: Mapping[str, str] = {}
        self._values: dict[str, AttributeValue] = {}
        """The values that clients have asked for: they hold their subscribers, the nodes are made again."""
        self._unpublished: dict[str, None] = {}
        """Tags whose subscribers have not the last sample yet."""
        self._awaited: dict[str, str] = {}
        """Tags of alarms that are not saved yet; they have no sample."""
        node_id = ua.NodeId(FOLDER, Namespace.ALARMS)
        name = type_name(FOLDER)
        self._folder = NodeData(node_id)
        self._folder.attributes = object_attributes(node_id, name, "The tags with their last samples.")
        self._own = [reference_to_type(_FOLDER_TYPE), reference_to(parent, HAS_COMPONENT, is_forward=False)]
        self._folder.references = self._own
        parent.references.append(reference_to(self._folder, HAS_COMPONENT))

    def show(self, saved: Mapping[str, str]) -> None:
        """Show the last samples of all saved tags, as text."""
        self._awaited = {tag: text for tag, text in self._awaited.items() if tag not in saved}
        self._show({**saved, **self._awaited})

    def expect(self, tag: str) -> None:
        """Show a tag before its last sample is saved, without a value until then: an alarm is about it."""
        if tag not in self._texts and len(self._awaited) < _MOST_AWAITED:
            self._awaited[tag] = ""
            self._show({**self._texts, tag: ""})

    def _show(self, texts: Mapping[str, str]) -> None:
        if texts.keys() != self._texts.keys() or self._defined is not self._definitions.known:
            self._defined = self._definitions.known
            self._folder.references = [
                *self._own,
                *(
                    make_reference(
                        HAS_COMPONENT,
                        tag_node_id(tag),
                        _name(tag),
                        ua.NodeClass.Variable,
                        self._item(tag).variable_type,
                    )
                    for tag in texts
                ),
            ]
        changed = (tag for tag in self._values if texts.get(tag) != self._texts.get(tag))
        self._unpublished |= dict.fromkeys(tag for tag in changed if self._values[tag].datachange_callbacks)
        self._texts = texts

    async def publish(self) -> None:
        """Publish the samples that changed to those who monitor their tags."""
        while self._unpublished:
            tag = next(iter(self._unpublished))
            del self._unpublished[tag]
            await notify_all(self._values[tag].datachange_callbacks, data_value(self._texts.get(tag), self._item(tag)))

    def _reference(self, tag: str) -> ua.ReferenceDescription:
        kind = self._item(tag).variable_type
        return make_reference(HAS_COMPONENT, tag_node_id(tag), _name(tag), ua.NodeClass.Variable, kind)

    def may_read(self, node_id: ua.NodeId, caller: Caller, _channel: ServerChannel) -> bool:
        """Return whether a caller may read the value of a node: that of a tag needs the role of its definition."""
        tag = tag_of(node_id)
        return tag is None or self._definitions.may_read(tag, caller.role)

    def has(self, tag: str) -> bool:
        """Return whether there is a tag."""
        return tag in self._texts

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return the folder, the node of a tag or one of its properties. Raises KeyError when there is none."""
        if node_id.Identifier == FOLDER:
            return self._folder
        tag = tag_of(node_id)
        if tag is None or tag not in self._texts:
            return self._property(node_id, tag or "")
        node = NodeData(node_id)
        item = self._item(tag)
        if tag not in self._values:
            self._values[tag] = AttributeValue(ua.DataValue())
            self._values[tag].value_callback = self._reader(tag)
        level = _READ | (_HISTORY if self._has_history else 0)
        node.attributes = {
            **variable_attributes(_name(tag), item.data_type, item.description, level),
            _A.NodeId: scalar(node_id, T.NodeId),
            _A.Value: self._values[tag],
        }
        node.references = [
            reference_to_type(item.variable_type, ua.NodeClass.VariableType),
            reference_to(self._folder, HAS_COMPONENT, is_forward=False),
            *(
                make_reference(
                    _HAS_PROPERTY, property_id(tag, name), ua.QualifiedName(name), ua.NodeClass.Variable, _PROPERTY_TYPE
                )
                for name in item.properties
            ),
        ]
        return node

    def _property(self, node_id: ua.NodeId, path: str) -> NodeData:
        tag, _, name = path.rpartition(_PROPERTY)
        value = self._item(tag).properties.get(name) if tag in self._texts else None
        if value is None:
            raise KeyError(node_id)
        is_structure = value.VariantType is T.ExtensionObject
        data_type = ua.NodeId(
            getattr(ua.ObjectIds, type(value.Value).__name__ if is_structure else value.VariantType.name)
        )
        node = NodeData(node_id)
        node.attributes = {
            **variable_attributes(ua.QualifiedName(name), data_type, _DESCRIPTIONS[name]),
            _A.NodeId: scalar(node_id, T.NodeId),
            _A.Value: AttributeValue(ua.DataValue(value)),
        }
        node.references = [
            reference_to_type(_PROPERTY_TYPE, ua.NodeClass.VariableType),
            reference_to(self.node(tag_node_id(tag)), _HAS_PROPERTY, is_forward=False),
        ]
        return node

    def _item(self, tag: str) -> TagItem:
        return tag_item(self._definitions, tag)

    def _reader(self, tag: str) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
        def read(_node: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
            return data_value(self._texts.get(tag), self._item(tag))

        return read


def tag_node_id(tag: str) -> ua.NodeId:
    """Return the NodeId of a tag."""
    return ua.NodeId(f"{FOLDER}/{tag}", Namespace.ALARMS)


def property_id(tag: str, name: str) -> ua.NodeId:
    """Return the NodeId of a property of a tag."""
    return ua.NodeId(f"{FOLDER}/{tag}{_PROPERTY}{name}", Namespace.ALARMS)


def tag_of(node_id: ua.NodeId) -> str | None:
    """Return the tag of a NodeId; None for another node."""
    identifier: Any = node_id.Identifier
    is_tag = node_id.NamespaceIndex == Namespace.ALARMS and isinstance(identifier, str)
    return identifier.removeprefix(f"{FOLDER}/") if is_tag and identifier.startswith(f"{FOLDER}/") else None


def is_of_tags(node_id: ua.NodeId) -> bool:
    """Return whether a NodeId is that of the folder or of a tag."""
    return node_id.Identifier == FOLDER or tag_of(node_id) is not None


def data_value(text: str | None, item: TagItem = UNDEFINED) -> ua.DataValue:
    """Return the last sample of a tag as DataValue."""
    try:
        sample = parse_line(text) if text is not None else None
    except ValueError:
        sample = None
    if not isinstance(sample, Sample):
        return _NO_SAMPLE
    at = utc(sample.at)
    variant, refusal = value_of(item, sample.value)
    status = refusal or ua.StatusCode(STATUS_OF[sample.quality])
    return ua.DataValue(variant, status, at, datetime.now(UTC))


def _name(tag: str) -> ua.QualifiedName:
    return ua.QualifiedName(tag, Namespace.ALARMS)
