"""A finding names its place in the language of its reader."""

from edge.features.recipes.plcopen.finding import PlcFinding, PlcPlace, cut, unique
from edge.foundation.text import Text


def test_a_finding_states_its_place_first() -> None:
    finding = PlcFinding(PlcPlace(12, 0, "Weld"), Text.of("the condition is empty"))
    assert finding.stated("en") == "localId 0, Weld, line 12: the condition is empty"
    assert finding.stated("de") == "localId 0, Weld, Zeile 12: die Bedingung ist leer"
    assert finding.stated("fr") == "localId 0, Weld, ligne 12: la condition est vide"
    assert finding.public("en") == {"message": finding.stated("en"), "local_id": 0, "name": "Weld", "line": 12}


def test_a_finding_without_place_is_its_text() -> None:
    assert PlcFinding(PlcPlace(), Text.of("the file is empty")).stated("en") == "the file is empty"


def test_long_names_are_cut() -> None:
    assert len(PlcFinding(PlcPlace(name="n" * 10_000), Text.of("the file is empty")).stated("en")) < 100
    assert cut("short") == "short"


def test_findings_are_stated_once_in_the_order_of_their_lines() -> None:
    findings = [PlcFinding(PlcPlace(line), Text.of("the file is empty")) for line in (3, 1, 3)]
    assert [finding.place.line for finding in unique(findings)] == [1, 3]
