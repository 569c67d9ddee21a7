"""The footprint of a run: what decides about its future, and nothing else."""

from edge.features.recipes.footprint import NOW, Footprints
from edge.sfc.advance import advance
from edge.sfc.net import Net
from edge.sfc.run import Run, new_run
from edge.sfc.signal import Advanced, Answer, Signal, Start
from tests.features.recipes.recipes import Json, action, net_of, recipe, way


def after(net: Net, *outcomes: bool) -> Run:
    """Return a run in which the commands of `a` and `b` were answered in turn."""
    run = new_run("J1", "s", "1", {})
    signals: list[Signal] = [
        Start(),
        *(Answer(f"J1/1/{name}/1", ok=ok) for name, ok in zip("ab", outcomes, strict=False)),
    ]
    for signal in signals:
        advanced = advance(net, run, signal, NOW)
        assert isinstance(advanced, Advanced)
        run = advanced.run
    return run


def two_ways(condition: str) -> Json:
    ways = (way("A", "B", "actions.a.done or actions.a.failed"), way("B", "C", condition))
    return recipe(*ways, actions=(action("a", "A"), action("b", "B")))


def test_outcome_that_no_condition_asks_for_any_more_does_not_count() -> None:
    net = net_of(two_ways("always"))
    footprints = Footprints(net)
    assert footprints.of(after(net, True)) == footprints.of(after(net, False))


def test_outcome_that_a_later_condition_asks_for_counts() -> None:
    net = net_of(two_ways("actions.a.done"))
    footprints = Footprints(net)
    assert footprints.of(after(net, True)) != footprints.of(after(net, False))
