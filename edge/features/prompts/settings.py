"""The settings of the kind `operator`, and `[prompts]`."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from edge.config import EquipmentSettings, Settings
from edge.config.sections import FeatureSettings, Section
from edge.features.prompts.prompt import kind_of
from edge.foundation.text import Text


class OperatorSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: the people at the station, and the actions that ask them; there is no wire."""

    kind: Annotated[Literal["operator"], Meta(description="Protocol.")]

    def conflicts(self, _settings: Settings) -> Iterator[str | Text]:
        """Yield types whose end does not say how a person answers."""
        for type_id in self.type_ids:
            if kind_of(type_id) is None:
                ends = Text("operator.confirm.v1, operator.choose.v1 or operator.enter.v1")
                yield Text.of("type_ids: {type_id} does not end with {ends}", type_id=type_id, ends=ends)


class PromptsSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[prompts]`: what prompts show, and which events answer them."""

    pictures: Annotated[
        str,
        Meta(
            description="Folder of the pictures that prompts name; empty shows none.",
            extra={"expected": "the path of a directory"},
        ),
    ] = ""
    buttons: Annotated[
        tuple[str, ...],
        Meta(description="Types of events that confirm the prompt of their scope, as of the buttons of a stack light."),
    ] = ()
    codes: Annotated[
        tuple[str, ...],
        Meta(
            description="Types of events whose code names a choice, or is the value to scan, such as those of a reader."
        ),
    ] = ()

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield types that are given twice, or without people at the station."""
        for type_id, times in Counter((*self.buttons, *self.codes)).items():
            if times > 1:
                yield Text.of("buttons, codes: {type_id} is given {times} times", type_id=type_id, times=times)
        if (self.buttons or self.codes) and not operator_types(settings):
            yield "buttons, codes: no equipment is of the kind operator"


SECTIONS = {"prompts": Section(PromptsSettings, after="southbound")}


def operator_types(settings: Settings) -> frozenset[str]:
    """Return the types of the actions that ask a person."""
    sections = settings.southbound.values()
    return frozenset(
        type_id for section in sections if isinstance(section, OperatorSettings) for type_id in section.type_ids
    )
