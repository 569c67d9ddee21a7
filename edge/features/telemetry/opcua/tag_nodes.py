"""The tags as variables: their last samples, and whether their history can be read.

    Gateway / Tags / <tag>

The nodes are created when a client asks for them; the values are those of the store, saved every few seconds.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.features.telemetry.opcua.history_values import STATUS_OF, variant_of
from edge.model.instant import utc
from edge.ports.sample_lines import Sample, parse_line
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
_VARIABLE_TYPE: Final = ua.NodeId(ua.ObjectIds.BaseDataVariableType)
_MOST_AWAITED: Final = 1_000
_NO_SAMPLE: Final = ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadWaitingForInitialData))


class TagNodes:
    """The folder of tags below an object; `has_history` is whether samples are kept."""

    def __init__(self, parent: NodeData, *, has_history: bool) -> None:
        self._has_history = has_history
        self._texts: Mapping[str, str] = {}
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
        if texts.keys() != self._texts.keys():
            self._folder.references = [
                *self._own,
                *(
                    make_reference(HAS_COMPONENT, tag_node_id(tag), _name(tag), ua.NodeClass.Variable, _VARIABLE_TYPE)
                    for tag in texts
                ),
            ]
        self._texts = texts

    def has(self, tag: str) -> bool:
        """Return whether there is a tag."""
        return tag in self._texts

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return the folder or the node of a tag. Raises KeyError when there is none."""
        if node_id.Identifier == FOLDER:
            return self._folder
        tag = tag_of(node_id)
        if tag is None or tag not in self._texts:
            raise KeyError(node_id)
        node = NodeData(node_id)
        value = AttributeValue(ua.DataValue())
        value.value_callback = self._reader(tag)
        level = _READ | (_HISTORY if self._has_history else 0)
        data_type = ua.NodeId(ua.ObjectIds.BaseDataType)
        node.attributes = {
            **variable_attributes(_name(tag), data_type, "The last sample of a tag.", level),
            _A.NodeId: scalar(node_id, T.NodeId),
            _A.Value: value,
        }
        node.references = [
            reference_to_type(_VARIABLE_TYPE, ua.NodeClass.VariableType),
            reference_to(self._folder, HAS_COMPONENT, is_forward=False),
        ]
        return node

    def _reader(self, tag: str) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
        def read(_node: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
            return data_value(self._texts.get(tag))

        return read


def tag_node_id(tag: str) -> ua.NodeId:
    """Return the NodeId of a tag."""
    return ua.NodeId(f"{FOLDER}/{tag}", Namespace.ALARMS)


def tag_of(node_id: ua.NodeId) -> str | None:
    """Return the tag of a NodeId; None for another node."""
    identifier: Any = node_id.Identifier
    is_tag = node_id.NamespaceIndex == Namespace.ALARMS and isinstance(identifier, str)
    return identifier.removeprefix(f"{FOLDER}/") if is_tag and identifier.startswith(f"{FOLDER}/") else None


def is_of_tags(node_id: ua.NodeId) -> bool:
    """Return whether a NodeId is that of the folder or of a tag."""
    return node_id.Identifier == FOLDER or tag_of(node_id) is not None


def data_value(text: str | None) -> ua.DataValue:
    """Return the last sample of a tag as DataValue."""
    try:
        sample = parse_line(text) if text is not None else None
    except ValueError:
        sample = None
    if not isinstance(sample, Sample):
        return _NO_SAMPLE
    at = utc(sample.at)
    status = ua.StatusCode(STATUS_OF[sample.quality])
    return ua.DataValue(variant_of(sample.value), status, at, datetime.now(UTC))


def _name(tag: str) -> ua.QualifiedName:
    return ua.QualifiedName(tag, Namespace.ALARMS)
