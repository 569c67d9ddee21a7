"""Counts the effects of decisions on runs; counting takes a microsecond for each decision."""

from collections import Counter

from edge.sfc.run import STATE_FIELD, Outcome
from edge.sfc.signal import Phase
from edge.station.runs import Progress


class Activity:
    """Counts of the decisions of this process since it started.

    `steps` counts step activations by scope, `commands` requested commands by type and phase, `ended` ended runs by
    scope and outcome.
    """

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.commands: Counter[tuple[str, Phase]] = Counter()
        self.ended: Counter[tuple[str, Outcome]] = Counter()

    def watch(self, progress: Progress) -> None:
        """Count the effects of a decision."""
        run = progress.loaded.stored.run
        for change in progress.steps:
            if change.active:
                self.steps[run.scope] += 1
        for request in progress.requests:
            self.commands[request.type_id, request.phase] += 1
        # After its end a run only changes by answers to resets and by late results.
        if run.ended and STATE_FIELD in run.touched:
            self.ended[run.scope, run.outcome] += 1
