"""The status line mentions a difference from the station files, and nothing else of them."""

from edge.app.station_drift import StationDrift


def test_status_mentions_only_a_difference() -> None:
    assert [list(StationDrift(text).notes()) for text in (None, "", "2 changed")] == [
        [],
        [],
        ["station differs from its files: 2 changed"],
    ]
