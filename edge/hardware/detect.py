"""Which board a computer is."""

from collections.abc import Mapping

from edge.errors import Refused
from edge.hardware.board import Board, Detect
from edge.hardware.computer import Computer


def detect(computer: Computer, boards: Mapping[str, Board]) -> str:
    """Give the name of the board whose rule fits best. Raises Refused when none does."""
    fits = {name: rank for name, board in boards.items() if (rank := _rank(computer, board.detect))}
    if not fits:
        model = computer.model() or "a computer that does not say what it is"
        raise Refused(
            "board", f"no board profile fits {model}", f"Name the nearest with --board: {', '.join(sorted(boards))}"
        )
    return max(fits, key=lambda name: fits[name])


def _rank(computer: Computer, rule: Detect) -> int:
    """Tell how exactly a rule fits: maker's word before model, model before kind of computer; 0 is not at all."""
    if set(rule.compatible) & set(computer.read("/proc/device-tree/compatible").splitlines()):
        return 4
    if any(computer.model().startswith(model) for model in rule.models):
        return 3
    if rule.virtual and computer.is_virtual():
        return 2
    return int(rule.dmi and computer.path("/sys/class/dmi/id").exists())
