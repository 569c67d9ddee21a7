"""Prints the faults of a flow."""

from collections.abc import Sequence

from edge.cli.terminal.output import print_text
from edge.features.flows.plan import Fault


def print_faults(file: str, faults: Sequence[Fault]) -> None:
    """Print each fault with its place, and their number."""
    for fault in faults:
        where = fault.where if isinstance(fault.where, str) else ", ".join(fault.where)
        print_text(f"{fault.kind.value}: {where}: {fault.message}")
    print_text(f"{file}: {len(faults)} fault{'' if len(faults) == 1 else 's'}")
