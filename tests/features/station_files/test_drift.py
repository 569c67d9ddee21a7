"""The status line shows only a difference from the station files."""

from edge.features.station_files.drift import StationDrift


def test_status_shows_station_files_only_if_they_differ() -> None:
    assert [list(StationDrift(text).notes()) for text in (None, "", "2 changed")] == [
        [],
        [],
        ["station differs from its files: 2 changed"],
    ]
