"""The metrics of the difference from the station files."""

from prometheus_client.core import Metric

from edge.app.metrics import gauge
from edge.features.station_files.service import StationDrift


def drift_metrics(drift: StationDrift) -> list[Metric]:
    """Return the differences from the station files; nothing without such files."""
    if drift.text is None:
        return []
    differing = [((change,), count) for change, count in drift.counts.items()]
    meaning = "Objects of the store that differ from the station files."
    return [
        gauge("station_drift", meaning, ("change",), differing),
        gauge("station_file_faults", "Faults in the station files.", (), [((), drift.faults)]),
    ]
