"""`[southbound.<name>]` of the kind `stacklight`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edge.config import EquipmentSettings, Settings
from edge.foundation.text import Text

_Line = Annotated[int, Meta(ge=0)]


class StackLightSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: a stack light with buttons at GPIO lines, and the actions it takes."""

    kind: Annotated[Literal["stacklight"], Meta(description="Protocol.")]
    chip: Annotated[
        str,
        Meta(description="Label of the GPIO chip, as `gpioinfo` reports it; `fake` is none, its lamps go to the log."),
    ]
    lamps: Annotated[
        Mapping[str, _Line],
        Meta(description="The line of each lamp.", extra={"expected": "a table of lines, as in { red = 17 }"}),
    ]
    buttons: Annotated[
        Mapping[str, _Line],
        Meta(
            description="The line of each button, by the `type_id` of its event.",
            extra={"expected": 'a table of lines, as in { "com.example.start.v1" = 5 }'},
        ),
    ] = msgspec.field(default_factory=dict)
    alarms: Annotated[
        Mapping[str, Annotated[int, Meta(ge=1, le=1000)]],
        Meta(
            description="Lamps that show alarms, each with the lowest severity; no recipe switches them.",
            extra={"expected": "a table of severities from 1 to 1000, as in { red = 700, yellow = 1 }"},
        ),
    ] = msgspec.field(default_factory=dict)
    scope: Annotated[
        str, Meta(description="The scope of the events of its buttons; empty takes the first of the gateway.")
    ] = ""

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield lines that are used twice, faults of the lamps of alarms, and a scope that the gateway lacks."""
        scopes = settings.gateway.scopes
        for line, times in Counter((*self.lamps.values(), *self.buttons.values())).items():
            if times > 1:
                yield Text.of("lamps, buttons: line {line} is given {times} times", line=line, times=times)
        for lamp in sorted(set(self.alarms) - set(self.lamps)):
            yield Text.of("alarms: {lamp} is none of lamps: {lamps}", lamp=lamp, lamps=", ".join(self.lamps))
        if len(set(self.alarms.values())) < len(self.alarms):
            yield "alarms: two lamps have the same severity"
        if self.alarms and settings.is_off("telemetry"):
            yield 'alarms: there are none with telemetry.mode = "off"'
        if self.scope and self.scope not in scopes:
            yield Text.of(
                "scope: {scope} is none of gateway.scopes: {scopes}", scope=self.scope, scopes=", ".join(scopes)
            )
