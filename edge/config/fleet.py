"""`[fleet]`: this component among the others of the plant."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct


class FleetSettings(Struct, frozen=True, kw_only=True):
    """`[fleet]`: what names this component in the list of all, and which commands it executes."""

    labels: Annotated[
        Mapping[str, str],
        Meta(
            description="Labels of this component, to list and to address it by.",
            extra={"expected": 'a table of texts, as in { line = "3" }'},
        ),
    ] = msgspec.field(default_factory=dict)
