"""Writes samples of any days to files of history, for tests that read them."""

from collections.abc import Iterable
from pathlib import Path

from edge.features.telemetry.history.day_files import append_day, by_day
from edge.ports.sample_lines import Sample


def append_samples(directory: Path, samples: Iterable[Sample], max_bytes: int) -> None:
    """Append samples to the files of their days."""
    for day, of_day in by_day(samples).items():
        append_day(directory, day, of_day, max_bytes)
