"""The text of operator decisions in the history and in the log."""

import pytest

from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene, Resolution, Resolve, SecondPerson


@pytest.mark.parametrize(
    ("signal", "text"),
    [
        (Resolve("bolt", Resolution.DONE, None, "seen", "anna"), "resolve bolt as done by anna: seen"),
        (Intervene(Intervention.SKIP, "bolt", "A", reason="seen", by="anna"), "skip bolt of A by anna: seen"),
        (Intervene(Intervention.RETRY, "bolt", reason="seen"), "retry bolt by unknown: seen"),
        (Intervene(Intervention.FORCE, step="A", target="B", by="anna"), "force A → B by anna: "),
        (
            Intervene(Intervention.COMPLETE, step="A", reason="seen", by="anna", second=SecondPerson(1)),
            "complete A by anna: seen, with a second person",
        ),
    ],
)
def test_operator_decision_has_readable_text(signal: Resolve | Intervene, text: str) -> None:
    assert str(signal.text) == text
