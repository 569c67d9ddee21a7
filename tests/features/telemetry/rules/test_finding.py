"""A finding as a line."""

from edge.features.telemetry.rules.finding import Finding, FindingEvent


def test_finding_line_has_its_members_in_the_documented_order() -> None:
    line = Finding(12_000, "hot", "wrench.temp", FindingEvent.RAISED, 500).as_json()
    assert list(line.items()) == [
        ("at", 12_000),
        ("rule", "hot"),
        ("subject", "wrench.temp"),
        ("event", "raised"),
        ("severity", 500),
    ]
