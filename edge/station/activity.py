"""Counts what runs do as they move on; a decision pays a microsecond for it."""

from collections import Counter

from edge.sfc.run import Outcome
from edge.sfc.signal import Phase
from edge.station.runs import Progress


class Activity:
    """What this process has decided since it started.

    `steps` are activations of steps by scope, `commands` those asked for by their type and phase, `ended` runs by scope
    and how they ended.
    """

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.commands: Counter[tuple[str, Phase]] = Counter()
        self.ended: Counter[tuple[str, Outcome]] = Counter()

    def watch(self, progress: Progress) -> None:
        """Count what a decision did."""
        run = progress.loaded.stored.run
        for change in progress.steps:
            if change.active:
                self.steps[run.scope] += 1
        for request in progress.requests:
            self.commands[request.type_id, request.phase] += 1
        # After its end a run only changes by answers to resets and by late results.
        if run.ended and "state" in run.touched:
            self.ended[run.scope, run.outcome] += 1
