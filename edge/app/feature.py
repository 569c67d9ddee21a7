"""What a feature declares: data, and the places of what it opens; nothing heavy is imported for it."""

from collections.abc import Mapping

from msgspec import Struct

from edge.equipment.kinds import EquipmentKind


class Noun(Struct, frozen=True):
    """A noun of the command `edge`: the module that defines it under its name, and the first line of its help."""

    module: str
    help: str


class Feature(Struct, frozen=True):
    """A feature of a gateway: one folder below `edge/features`, and one row in `edge.app.features`.

    `commands` are its nouns of the command `edge`, `kinds` its kinds of equipment by the value of `kind`.
    """

    name: str
    commands: Mapping[str, Noun] = {}
    kinds: Mapping[str, EquipmentKind] = {}
