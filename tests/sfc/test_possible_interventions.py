"""The listed interventions are exactly those that the engine accepts."""

from typing import Any

from hypothesis import given

from edge.model.recipe import Intervention
from edge.sfc.advance import advance
from edge.sfc.possible_interventions import possible_interventions
from edge.sfc.signal import Advanced, Intervene
from tests.sfc.charts import DAY, recipes
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, net_of, recipe, transition
from tests.sfc.test_advance_properties import MANY, Day, fresh, play

RETRY, SKIP, FORCE, COMPLETE = Intervention


def test_a_failed_action_can_be_retried_or_skipped_and_its_step_left() -> None:
    data = recipe("A B", [transition("A", "B", "go")], [action("bolt", "A")])
    driven = Driven(net_of({**data, "interventions": ["retry", "skip", "force", "complete"]}))
    assert possible_interventions(driven.net, driven.run, 10) == (
        Intervene(SKIP, "bolt", "A"),
        Intervene(COMPLETE, step="A"),
        Intervene(FORCE, step="A", target="B"),
    )
    driven.answer("bolt", 20, error="torque low")
    assert Intervene(RETRY, "bolt", "A") in possible_interventions(driven.net, driven.run, 30)
    driven.signal(Intervene(FORCE, step="A", target="B"), 40)
    assert possible_interventions(driven.net, driven.run, 50) == ()


def test_no_intervention_is_possible_without_permission() -> None:
    driven = Driven(net_of(recipe("A B", [transition("A", "B", "go")], [action("bolt", "A")])))
    assert possible_interventions(driven.net, driven.run, 10) == ()


@MANY
@given(recipes(), DAY)
def test_accepted_intervention_was_listed_before(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    for before, signal, now, _ in play(net, fresh(), day):
        if isinstance(signal, Intervene) and signal.second is None:
            kinds = [
                (intervention.kind, intervention.action or intervention.step)
                for intervention in possible_interventions(net, before, now)
            ]
            assert (signal.kind, signal.action or signal.step) in kinds
            assert isinstance(advance(net, before, signal, now), Advanced)
