"""A decision changes nothing but its own copy."""

from edge.sfc.advance import advance
from edge.sfc.identifiers import AssociationKey
from edge.sfc.run_fields import encode
from edge.sfc.signal import Advanced, Answer, Tick
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of


def test_decision_leaves_the_previous_run_unchanged() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))))
    before = encode(driven.run)
    advanced = advance(driven.net, driven.run, Answer("J1/R1/a/1", ok=True, data={"x": 1}), 5)
    assert isinstance(advanced, Advanced)
    assert encode(driven.run) == before != encode(advanced.run)


def test_decision_records_the_fields_it_changed() -> None:
    driven = Driven(net_of(chain("A B C", action("a", "A"), action("b", "B"))))
    driven.answer("a", 5, {"x": 1})
    a, b = AssociationKey("a", "A"), AssociationKey("b", "B")
    assert driven.run.touched == {("step", "A"), ("step", "B"), ("action", a), ("action", b), ("var", "x")}
    driven.signal(Tick(), 6)
    assert driven.run.touched == frozenset()
