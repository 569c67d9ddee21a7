"""The conditions that prompts are in OPC UA, and the type of those that ask for values.

Confirm and choose are dialogs of OPC 10000-9, 5.6. A dialog has no values, so `enter` has a type of our own:

    EnterPromptType (ConditionType) / FieldNames, FieldTitles, FieldTypes, FieldUnits, OptionalFields, AnswerPrompt()
"""

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from msgspec import Struct

from edge.app.parts import GatewayParts
from edge.features.prompts.open_prompt import OpenPrompt
from edge.features.prompts.prompt import PromptField, PromptKind
from edge.foundation.text import Text, labels, language_for
from edge.model.localized_text import AuthorText, choose_text, localized, title_of
from edge.opcua.access import LOCALES
from edge.opcua.server_core import ServerCore
from edge.uaserver.condition_members import (
    BASE_MEMBERS,
    ConditionMember,
    ConditionShape,
    T,
    property_member,
    table_of,
    two_states,
)
from edge.uaserver.namespaces import Namespace
from edge.uaserver.own_types import (
    MANDATORY,
    VariableSpec,
    add_modelling_rules,
    add_nodes,
    argument,
    base,
    instant,
    method_items,
    object_type,
    type_node,
)
from edge.uaserver.parts import NewServer

_I: Final = ua.ObjectIds
ENTER_TYPE: Final = type_node("EnterPromptType")
ANSWER_METHOD: Final = type_node("EnterPromptType", "AnswerPrompt")
RESPOND: Final = ua.NodeId(_I.DialogConditionType_Respond)
_SEVERITY: Final = 500
"""Medium: work waits for a person."""
_NO_OPTION: Final = -1


class PromptView(Struct, frozen=True):
    """A prompt as clients see it; `response` is the index of the answer, `outcome` how it ended, in English."""

    prompt: OpenPrompt
    source: ua.NodeId
    changed_at: int
    is_open: bool = True
    by: str = ""
    response: int | None = None
    outcome: str = ""

    @property
    def event_id(self) -> bytes:
        """Return the id of the event with this state."""
        state = f"first {self.prompt.first}" if self.is_open else "ended"
        return hashlib.sha256(f"{self.prompt.command_id} {state}".encode()).digest()[:16]

    @property
    def type_id(self) -> ua.NodeId:
        """Return the type of the condition."""
        return shape_of(self.prompt.kind).type_id

    @property
    def class_id(self) -> int:
        """Return the class: it belongs to the process."""
        return _I.ProcessConditionClassType

    @property
    def name(self) -> str:
        """Return the ConditionName: the job and the action."""
        return f"{self.prompt.job_id}: {self.prompt.action}"

    @property
    def source_name(self) -> str:
        """Return the scope."""
        return self.prompt.scope

    @property
    def branch_id(self) -> ua.NodeId:
        """Return null: a prompt has no branches."""
        return ua.NodeId()

    @property
    def message(self) -> ua.LocalizedText:
        """Return the title."""
        return _text(self.prompt.prompt.title)

    @property
    def severity(self) -> int:
        """Return the severity."""
        return _SEVERITY

    @property
    def last_severity(self) -> int:
        """Return the severity: it never changes."""
        return _SEVERITY

    @property
    def is_retained(self) -> bool:
        """Return whether it waits for an answer."""
        return self.is_open

    @property
    def is_enabled(self) -> bool:
        """Return True: no person switches a prompt off."""
        return True

    @property
    def comment(self) -> str:
        """Return how it ended."""
        return self.outcome

    @property
    def quality(self) -> ua.StatusCode:
        """Return Good."""
        return ua.StatusCode()

    def instant_of(self, state: str) -> int:
        """Return when a state changed."""
        return self.changed_at if state in {"dialog", "comment"} else self.prompt.since

    @property
    def ok_response(self) -> int:
        """Return the button that confirms; none of several choices does."""
        return 0 if self.prompt.kind is PromptKind.CONFIRM else _NO_OPTION

    @property
    def options(self) -> list[ua.LocalizedText]:
        """Return the texts of the buttons, in their order."""
        if self.prompt.kind is PromptKind.CONFIRM:
            language = language_for(LOCALES.get())
            return [ua.LocalizedText(labels(language)["confirm"], language)]
        return [_text(choice.title or title_of(choice.value, None, ())) for choice in self.prompt.prompt.choices]


def response_of(prompt: OpenPrompt, result: Any) -> int | None:
    """Return the index of the answer that a result has; None for none."""
    match result:
        case {"choice": str(value)}:
            values = [choice.value for choice in prompt.prompt.choices]
            return values.index(value) if value in values else None
        case {"confirmed": True}:
            return 0
        case _:
            return None


def choice_of(prompt: OpenPrompt, response: int) -> str | None:
    """Return the value of the choice with an index, empty for a confirmation; None for an index without an option."""
    values = [choice.value for choice in prompt.prompt.choices] or [""]
    return values[response] if 0 <= response < len(values) else None


def _text(text: AuthorText) -> ua.LocalizedText:
    chosen = localized(text, LOCALES.get())
    return ua.LocalizedText(chosen.text, chosen.locale or None)


def _question(view: PromptView) -> ua.LocalizedText:
    """Return the title, and the text below it."""
    title, prompt = view.message, view.prompt.prompt
    if prompt.text is None:
        return title
    return ua.LocalizedText(f"{title.Text}\n{choose_text(prompt.text, LOCALES.get())}", title.Locale)


def _field(name: str, kind: ua.VariantType, description: str, value: Callable[[PromptField], Any]) -> VariableSpec:
    def read(view: PromptView) -> ua.Variant:
        return ua.Variant([value(item) for item in view.prompt.prompt.fields], kind, is_array=True)

    return VariableSpec(name, base(kind), description, read, is_array=True)


def _title(item: PromptField) -> ua.LocalizedText:
    return _text(item.title) if item.title else ua.LocalizedText(title_of(item.name, None, ()))


_DIALOG: Final[tuple[ConditionMember, ...]] = (
    *two_states(
        "DialogState",
        (Text.of("Active"), Text.of("Inactive")),
        lambda v: v.is_open,
        lambda v: instant(v.instant_of("dialog")),
    ),
    property_member("Prompt", T.LocalizedText, _question),
    property_member("ResponseOptionSet", T.LocalizedText, lambda v: v.options, is_array=True),
    property_member("DefaultResponse", T.Int32, lambda v: v.ok_response),
    property_member("OkResponse", T.Int32, lambda v: v.ok_response),
    property_member("CancelResponse", T.Int32, lambda _: _NO_OPTION),
    property_member("LastResponse", T.Int32, lambda v: v.response),
)
_FIELDS: Final = (
    _field("FieldNames", T.String, "The names of the values, for AnswerPrompt.", lambda item: item.name),
    _field("FieldTitles", T.LocalizedText, "The title of each value.", _title),
    _field("FieldTypes", T.String, "The type of each value: text, number, scan or photo.", lambda item: item.type),
    _field("FieldUnits", T.String, "The unit of each value; empty for none.", lambda item: item.unit),
    _field("OptionalFields", T.Boolean, "Whether each value may be left out.", lambda item: item.optional),
)


def _member(spec: VariableSpec) -> ConditionMember:
    kind = T(spec.data_type.Identifier)
    variable = _I.BaseDataVariableType
    return ConditionMember(spec.name, kind, spec.value, kind.value, variable, is_array=True, namespace=Namespace.TYPES)


_OF_CONDITION: Final = (
    ua.NodeId(_I.ConditionType_Enable),
    ua.NodeId(_I.ConditionType_Disable),
    ua.NodeId(_I.ConditionType_AddComment),
)
_DIALOG_SHAPE: Final = ConditionShape(
    ua.NodeId(_I.DialogConditionType), table_of((*BASE_MEMBERS, *_DIALOG)), methods={"": (*_OF_CONDITION, RESPOND)}
)
_ENTER_SHAPE: Final = ConditionShape(
    ENTER_TYPE,
    table_of((*BASE_MEMBERS, *map(_member, _FIELDS))),
    methods={"": (*_OF_CONDITION, ANSWER_METHOD)},
)
_SHAPES: Final[Mapping[PromptKind, ConditionShape]] = MappingProxyType(
    {PromptKind.CONFIRM: _DIALOG_SHAPE, PromptKind.CHOOSE: _DIALOG_SHAPE, PromptKind.ENTER: _ENTER_SHAPE}
)


def shape_of(kind: PromptKind) -> ConditionShape:
    """Return what the condition of a prompt consists of."""
    return _SHAPES[kind]


async def add_types(_core: GatewayParts, new: NewServer) -> None:
    """Add the types of prompts to a server where no prompt can be asked."""
    add_prompt_types(new.core)


def add_prompt_types(core: ServerCore) -> None:
    """Add the type of prompts that ask for values."""
    add_nodes(core, object_type(ENTER_TYPE, _FIELDS, parent=ua.NodeId(_I.ConditionType)))
    add_nodes(core, method_items(ANSWER_METHOD, ENTER_TYPE, _ANSWER, _ARGUMENTS, _AWAITS_SECOND))
    members = (*(type_node("EnterPromptType", spec.name) for spec in _FIELDS), ANSWER_METHOD)
    add_modelling_rules(core, ((node_id, MANDATORY) for node_id in members))


_ANSWER: Final = "Answer the prompt with values."
_ARGUMENTS: Final = (
    argument("Names", base(T.String), "The names of the values, each of FieldNames once.", is_array=True),
    argument("Values", base(T.String), "The values in the same order; a number as a person types it.", is_array=True),
)
_AWAITS_SECOND: Final = argument("AwaitsSecond", base(T.Boolean), "Whether another person must answer the same.")
