"""Lists the interventions that a run accepts now, for people who look for a way on."""

from __future__ import annotations

from collections.abc import Iterator

from edge.model.recipe import Intervention
from edge.sfc.advance import advance
from edge.sfc.net import Net
from edge.sfc.run import Run
from edge.sfc.signal import Advanced, Intervene


def possible_interventions(net: Net, run: Run, now: int) -> tuple[Intervene, ...]:
    """Return each intervention that would change the run, without person and reason, in the order of the recipe."""
    if run.ended or run.started_at is None:
        return ()
    # The engine itself decides, so that this list cannot differ from its decision.
    found = dict.fromkeys(_candidates(net, run))
    return tuple(intervene for intervene in found if isinstance(advance(net, run, intervene, now), Advanced))


def _candidates(net: Net, run: Run) -> Iterator[Intervene]:
    for key, action in net.actions.items():
        if key in run.associations:
            for kind in (Intervention.RETRY, Intervention.SKIP):
                if kind in action.interventions:
                    yield Intervene(kind, action=key.action, step=key.step)
    for name, step in net.steps.items():
        if name not in run.active:
            continue
        if Intervention.COMPLETE in step.interventions:
            yield Intervene(Intervention.COMPLETE, step=name)
        if Intervention.FORCE in step.interventions:
            for transition in step.outgoing:
                yield Intervene(Intervention.FORCE, step=name, target=transition.targets[0])
