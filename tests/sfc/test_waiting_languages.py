"""Each reason for waiting is stated in the language of its reader; what equipment and people wrote stays as it is."""

import pytest

from edge.expression.compiler import Unmet
from edge.foundation.text import Text
from edge.model.recipe import Intervention
from edge.sfc.action import failed
from edge.sfc.intervention import HeldFailure
from edge.sfc.run import ActionState
from edge.sfc.signal import MirrorCopy
from edge.sfc.waiting import (
    ActionWaits,
    PersonWaits,
    RunHalted,
    SecondPersonWaits,
    TransitionWaits,
    Waiting,
    explain_waiting,
)
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of, recipe, transition

UNMET = TransitionWaits(
    ("A",),
    ("B",),
    "torque > 80",
    (
        Unmet("torque > 80", Text.of("{name}: no value yet", name="torque")),
        Unmet(Text.of("lock {lock}", lock="jig"), Text.of("not free")),
    ),
)
SENT = ActionWaits("a", "A", ActionState.DISPATCHED, 1, 4000, 6000, None)
UNKNOWN = ActionWaits(
    "a", "A", ActionState.UNKNOWN, 1, 4000, None, None, Text.of("outcome unknown: {reason}", reason="power lost")
)
PERSON = PersonWaits(
    HeldFailure("a", "A", 1, ActionState.FAILED, failed("no air"), (Intervention.RETRY, Intervention.SKIP))
)
SECOND = SecondPersonWaits("skip", "a of A", "anna", 59_001)


@pytest.mark.parametrize(
    ("wait", "german", "french"),
    [
        (
            UNMET,
            "A → B [torque > 80] wartet auf torque > 80: torque: noch kein Wert; Sperre jig: nicht frei",
            "A → B [torque > 80] attend torque > 80: torque : pas encore de valeur; verrou jig: pas libre",
        ),
        (
            SENT,
            "Aktion a von A ist gesendet, seit 4 s, Zeitlimit in 6 s",
            "action a de A : envoyé, depuis 4 s, délai dépassé dans 6 s",
        ),
        (
            UNKNOWN,
            "Aktion a von A ist unbekannt, Ausgang unbekannt: power lost, seit 4 s",
            "action a de A : inconnu, issue inconnue : power lost, depuis 4 s",
        ),
        (
            PERSON,
            "Aktion a von A fehlgeschlagen: no air: wartet auf eine Person (Wiederholen, Überspringen)",
            "action a de A échoué : no air : attend une personne (répéter, sauter)",
        ),
        (
            SECOND,
            "Überspringen a of A, angefordert von anna: wartet 60 s auf eine zweite Person",
            "sauter a of A, demandé par anna : attend une seconde personne pendant 60 s",
        ),
        (
            RunHalted(Text.of("paused for {seconds:g} s", seconds=60)),
            "angehalten seit 60 s",
            "en pause depuis 60 s",
        ),
    ],
    ids=["unmet", "sent", "unknown", "person", "second person", "paused"],
)
def test_wait_is_stated_in_the_language_of_its_reader(wait: Waiting, german: str, french: str) -> None:
    assert (wait.text.in_language("de"), wait.text.in_language("fr")) == (german, french)


def test_condition_that_cannot_be_evaluated_is_explained_in_german() -> None:
    driven = Driven(net_of(recipe("A B", [transition("A", "B", "torque > 80")], [action("a", "A")])), {"torque": "85"})
    text = explain_waiting(driven.net, driven.run, 0)[0].text.in_language("de")
    assert "'torque > 80' vergleicht Ungleiches: ein Text und eine Zahl ('85', 80)" in text
    assert "a ist gesendet" in text


def test_error_of_a_failed_run_keeps_the_words_of_its_equipment() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"))))
    driven.answer("a", 1, error="no part {x}")
    (halted,) = explain_waiting(driven.net, driven.run, 2)
    assert str(halted) == "the run is failed: action 'a' of step 'A' failed: no part {x}"
    assert halted.text.in_language("de") == (
        "der Ablauf ist fehlgeschlagen: Aktion 'a' von Schritt 'A' fehlgeschlagen: no part {x}"
    )


def test_state_of_a_mirrored_copy_is_a_text() -> None:
    assert MirrorCopy(frozenset("ab"), is_stale=True).text.in_language("de") == "eine Kopie mit 2 Mitgliedern, veraltet"
