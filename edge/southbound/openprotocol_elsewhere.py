"""Commands that another gateway on the store carries out at the same controller: this one reports no result of theirs.

A controller sends each result to all its clients. The answer comes from the gateway of the command; from another one
only when that one has not answered within seconds, as after a power cut.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from edge.sfc.signal import Phase
from edge.southbound.openprotocol_conversion import answer_data, is_batch, result_data
from edge.southbound.result_ledger import KeptResult, ResultLedger, limit_memory
from edge.station.equipment import Command

ANSWER_SECONDS = 2.0
"""The seconds for the gateway of a command to store its answer; a controller waits longer for an acknowledgement."""

CHECK_SECONDS = 0.25
"""The seconds between two checks of a result that is kept for another gateway."""

OpenCommands: TypeAlias = Callable[[], Awaitable[Sequence[Command]]]
"""Returns the starts and resets that wait for an answer in the store."""


class CommandsElsewhere(Struct):
    """The commands whose marks were found at the controller, and that this gateway has not started."""

    ledger: ResultLedger
    open_commands: OpenCommands
    remember: Callable[[Command], None]
    has_marks: bool
    _commands: dict[str, Command] = field(default_factory=dict)

    async def learn(self, identifier: str) -> None:
        """Remember the command of an identifier that is not known here; raises Unavailable without the store."""
        marks = self.ledger.marks
        if not self.has_marks or not identifier or identifier in marks:
            return
        commands = [command for command in await self.open_commands() if command.phase is Phase.START]
        for command in commands:
            self.remember(command)
        self._commands |= {each.command_id: each for each in commands if each.command_id == marks.get(identifier)}
        limit_memory(self._commands)

    def withdraw(self, command_id: str) -> None:
        """Record that this gateway starts a command itself."""
        self._commands.pop(command_id, None)

    def kept(self) -> list[tuple[KeptResult, Command]]:
        """Return the results that are kept for other gateways, with their commands."""
        return [
            (kept, self._commands[kept.command_id])
            for kept in self.ledger.unsettled()
            if kept.command_id in self._commands and kept.command_id != self.ledger.current
        ]


def is_answered_here(kept: KeptResult, command: Command, now: float) -> bool:
    """Return whether a result is the answer to a command whose own gateway did not answer in time."""
    waited = now - kept.report.received
    return not kept.is_further and not is_batch(command) and waited >= ANSWER_SECONDS


def data_elsewhere(kept: KeptResult, command: Command) -> dict[str, Any]:
    """Return a result as the answer to its command, or as one bolt of a batch."""
    payload = kept.report.payload
    return result_data(payload) if is_batch(command) else answer_data([payload], command)
