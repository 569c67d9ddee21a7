"""A naive alarm: it keeps the history of what happened and derives each state from it, without a table."""

from dataclasses import dataclass, field


@dataclass
class NaiveAlarm:
    """The history of one alarm, as a list of words; severities are kept next to it."""

    latch: bool
    confirm: bool
    history: list[str] = field(default_factory=list)
    severity: int = 0
    until: int | None = None
    one_shot: bool = False
    shelved: bool = False
    suppressed: bool = False
    disabled: bool = False

    def last(self, *words: str) -> int:
        """Return the position of the last of some words in the history; -1 without one."""
        return max((at for at, word in enumerate(self.history) if word in words), default=-1)

    @property
    def holds(self) -> bool:
        return self.last("raise") > self.last("clear")

    @property
    def active(self) -> str:
        if self.holds:
            return "active"
        waits_for_reset = self.latch and self.last("clear") > self.last("reset")
        return "latched" if waits_for_reset else "inactive"

    @property
    def acknowledgement(self) -> str:
        asked = self.last("raise", "escalate")
        if asked < 0:
            return "confirmed"
        if self.last("acknowledge") < asked:
            return "unacknowledged"
        return "acknowledged" if self.confirm and self.last("confirm") < asked else "confirmed"

    def report(self, severity: int) -> bool:
        """Note that the condition holds with a severity; return whether this changes the alarm."""
        if not self.holds:
            self.history.append("raise")
        elif severity > self.severity:
            self.history.append("escalate")
        elif severity == self.severity:
            return False
        self.severity = severity
        return True

    def clear(self) -> bool:
        """Note that the condition is over; return whether this changes the alarm."""
        if not self.holds:
            return False
        self.history.append("clear")
        if self.one_shot:
            self.shelved = self.one_shot = False
        return True

    def answer(self, word: str) -> bool:
        """Note the answer of a person; return whether it is allowed."""
        match word:
            case "acknowledge":
                allowed = self.acknowledgement == "unacknowledged"
            case "confirm":
                allowed = self.acknowledgement == "acknowledged"
            case _:
                allowed = self.active == "latched" and self.acknowledgement == "confirmed"
        if allowed:
            self.history.append(word)
        return allowed
