"""The public form of findings: in the language of the reader, with the place in the text."""

from edge.features.recipes.check import check_net
from edge.features.recipes.finding import ElementType
from edge.features.recipes.public_finding import public_findings
from tests.features.recipes.recipes import net_of, recipe, way


def test_finding_is_in_the_language_of_the_reader() -> None:
    findings = check_net(net_of(recipe(way("A", "B", "never")))).findings
    (german,) = public_findings(findings, {(ElementType.STEP, 0): (3, 7)}, "de")
    assert german.message.startswith("Schritt A: ")
    assert (german.kind, german.level, german.line, german.column) == ("dead-end", "fault", 3, 7)
    (plain,) = public_findings(findings)
    assert (plain.line, plain.witness is None) == (None, False)
