"""Loads what is needed to check flows, only where station files have flows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edge.features.station_files.content import PlanFaults, has_flows

if TYPE_CHECKING:
    from edge.features.flows.nodes.registry import NodeKinds
    from edge.features.flows.plan import Plans


async def load_plans(folder: Path, nodes: str, kinds: "NodeKinds | None" = None) -> "Plans | None":
    """Return the plans of flows with the node kinds of the site in `nodes`, unless `kinds` are loaded.

    Return None for a folder without flows.
    """
    if not has_flows(folder):
        return None
    # Imported only where there are flows.
    from edge.features.flows.plan import Plans  # noqa: PLC0415
    from edge.features.flows.plugins import load_usable_kinds  # noqa: PLC0415

    return Plans(await load_usable_kinds(nodes) if kinds is None else kinds)


def plan_faults(plans: "Plans | None") -> PlanFaults:
    """Return the function that returns the faults of a flow; without plans no flow is known."""

    def faults_of(document: object) -> Sequence[str]:
        if plans is None:
            return ("the file came while the folder was read; read it again",)
        from edge.features.flows.plan import Rejected  # noqa: PLC0415

        match plans.of(msgspec.json.encode(document).decode()):
            case Rejected(faults=faults):
                return [f"{fault.kind.value}: {_place(fault.where)}: {fault.message}" for fault in faults]
            case _:
                return ()

    return faults_of


def _place(where: str | tuple[str, ...]) -> str:
    return where if isinstance(where, str) else ", ".join(where)
