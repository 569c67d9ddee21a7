"""Estimates how far a run is on its way: the steps that it has entered, and those that lie ahead of it."""

from edge.sfc.net import Net
from edge.sfc.run import Run


def expected_steps(net: Net, run: Run) -> int:
    """Return the number of steps of the way that a run takes: those it has entered, and those that lie ahead.

    Ahead of each active step lies the first way by rank that leads to a step that it has not entered, such as the one
    without a failure. A run that has ended has none ahead.
    """
    way = {name for name, step in run.steps.items() if step.count}
    if run.ended:
        return len(way)
    ahead = list(run.active) if run.steps else [net.initial]
    way.update(ahead)
    while ahead:
        for transition in net.steps[ahead.pop()].outgoing:
            if new := [target for target in transition.targets if target not in way]:
                way.update(new)
                ahead += new
                break
    return len(way)
