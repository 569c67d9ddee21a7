"""Detects the board of a computer."""

from collections.abc import Mapping

from edge.features.admin.hardware.board import Board, Detect
from edge.foundation.computer import Computer
from edge.foundation.errors import Refused


def detect(computer: Computer, boards: Mapping[str, Board]) -> str:
    """Return the name of the board with the best matching rule. Raises Refused when none matches."""
    fits = {name: rank for name, board in boards.items() if (rank := _rank(computer, board.detect))}
    if not fits:
        model = computer.model() or "an unknown computer model"
        raise Refused(
            "board",
            f"no board profile matches {model}",
            f"Name the most similar with --board: {', '.join(sorted(boards))}",
        )
    return max(fits, key=lambda name: fits[name])


def _rank(computer: Computer, rule: Detect) -> int:
    """Return how exactly a rule matches: compatible string, then model, then kind of computer; 0 means no match."""
    if set(rule.compatible) & set(computer.read("/proc/device-tree/compatible").splitlines()):
        return 4
    if any(computer.model().startswith(model) for model in rule.models):
        return 3
    if rule.virtual and computer.is_virtual():
        return 2
    return int(rule.dmi and computer.path("/sys/class/dmi/id").exists())
