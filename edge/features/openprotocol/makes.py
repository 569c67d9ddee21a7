"""What makes of controllers do differently, by the supplier code of MID 0002."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from edge.features.openprotocol.protocol.mids import Mid, revisions_of
from edge.features.openprotocol.protocol.result_fields import LIGHT_REVISION


class ControllerMake(Struct, frozen=True):
    """A make: its name and what its controllers need.

    `keep_alive` are the seconds between two heartbeats. `result_revisions` are tried for the subscription of
    results, from the first on. Without `alarms`, alarms are not subscribed to. Without `counts_results`, the numbers of
    results do not match those of old results: a missed result cannot be requested. One that `reports_lock` knows the
    relay function of a locked tool.
    """

    name: str
    keep_alive: float = 5.0
    result_revisions: tuple[int, ...] = tuple(number for number in revisions_of(Mid.RESULT) if number != LIGHT_REVISION)
    alarms: bool = True
    counts_results: bool = True
    reports_lock: bool = False


_UNKNOWN = ControllerMake("unknown make")

MAKES: Mapping[str, ControllerMake] = MappingProxyType(
    {
        "ACT": ControllerMake("Atlas Copco", reports_lock=True),
        "ATG": ControllerMake("Cleco", keep_alive=2.0),
        # Some of its controllers stop answering when heartbeats come more often.
        "BRC": ControllerMake("Bosch Rexroth", keep_alive=5.0),
        "BTC": ControllerMake("HS-Technik", keep_alive=2.0),
        "CEL": ControllerMake("Crane Electronics", keep_alive=1.0),
        "CET": ControllerMake("Sturtevant Richmont", keep_alive=2.0, alarms=False, counts_results=False),
        "GHM": ControllerMake("Gehmeyr", keep_alive=2.0, result_revisions=(LIGHT_REVISION,), alarms=False),
        "GWK": ControllerMake("GWK", keep_alive=2.0),
        "REX": ControllerMake("Rexroth OPEXplus", keep_alive=2.0),
    }
)
"""By supplier code. The entries are from public descriptions of these controllers, not from tests with them."""


def make_of(controller: Mapping[str, Any]) -> ControllerMake:
    """Return the make of a controller by the fields of its MID 0002; a default for an unknown supplier."""
    return MAKES.get(controller.get("supplier") or "", _UNKNOWN)
