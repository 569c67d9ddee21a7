"""Output of `edge tags export` and of the trend of `edge tags show`."""

import csv
import io
import json
import subprocess
import time
from pathlib import Path

import click
import nanoarrow as na
import pytest

from edge.features.telemetry.cli.tag_history import parse_instant, trend_of, write_samples
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample, read_lines
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.features.telemetry.history.written import append_samples

NOW = 1_800_000_000_000
SAMPLES = [
    Sample(NOW, "a", 1.5),
    Sample(NOW + 5, "b", "=1+1", process="P"),
    Sample(NOW + 7, "a", None),
    Sample(NOW + 9, "a", True),
]


def test_instants_are_parsed_as_iso_or_relative_to_now() -> None:
    assert parse_instant("90m", NOW) == NOW - 5_400_000
    assert parse_instant("0s", NOW) == NOW
    assert parse_instant("2027-01-15T08:00:00+00:00", NOW) == NOW
    for text in ("yesterday", "5", "-1h", "9999999999d", ""):
        with pytest.raises((click.UsageError, OverflowError)):
            parse_instant(text, NOW)


def test_csv_export_is_spreadsheet_safe_and_json_export_is_replayable(tmp_path: Path) -> None:
    file = tmp_path / "out"
    assert write_samples(SAMPLES, "csv", file) == 4
    rows = list(csv.reader(io.StringIO(file.read_text())))
    assert rows[0] == ["at", "tag", "value", "quality", "process", "job", "action", "carrier", "gateway"]
    assert [row[2] for row in rows[1:]] == ["1.5", "'=1+1", "", "true"]
    assert rows[1][0] == "2027-01-15T08:00:00.000+00:00"
    assert write_samples(SAMPLES, "json", file) == 4
    assert list(read_lines(file.read_text().splitlines(), lambda *_: None)) == SAMPLES


def test_arrow_export_is_readable_by_other_programs(tmp_path: Path) -> None:
    file = tmp_path / "out.arrows"
    assert write_samples(SAMPLES, "arrow", file) == 4
    with na.ArrayStream.from_path(str(file)) as stream:
        assert len(stream.read_all()) == 4


def test_trend_has_a_bar_for_each_interval_with_numbers() -> None:
    samples = [Sample(at * 10, "t", value) for at, value in ((0, 1), (1, 3), (5, 9), (9, "x"))]
    trend = trend_of(samples, 0, 100, parts=10)
    assert trend
    assert (trend.count, trend.least, trend.largest) == (3, 1, 9)
    assert trend.bars == "▁▃   █    "
    assert trend_of([Sample(0, "t", "text")], 0, 100) is None


async def test_samples_of_a_time_range_are_exported(
    edge: Edge, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_TELEMETRY__HISTORY_DAYS", "7")
    monkeypatch.setenv("EDGE_TELEMETRY__HISTORY_DIRECTORY", str(tmp_path / "history"))
    now = int(time.time() * 1000)
    samples = [Sample(now - 3_600_000 * hours, "wrench.torque", 80.0 + hours) for hours in (30, 3, 2, 1)]
    append_samples(tmp_path / "history", samples, 1 << 30)
    await store.commit(tags.save_last(store.keys, {"wrench.torque": encode_line(samples[-1])}))
    exported = await edge("tags", "export", "wrench.*", "x", "--from", "4h", "--to", "90m", "--format", "json")
    assert [json.loads(line)["value"] for line in exported.output.splitlines()] == [83.0, 82.0]
    file = tmp_path / "all.csv"
    assert (await edge("tags", "export", "wrench.torque", "--from", "40h", "--output", str(file))).output.startswith(
        "4 "
    )
    result = await edge("tags", "show", "wrench.torque")
    assert "min 81, mean 82, max 83, 3 samples" in result.output
    data = json.loads((await edge("tags", "show", "wrench.torque", "--json")).output)
    assert data["trend"] == {"hours": 24, "count": 3, "min": 81.0, "mean": 82.0, "max": 83.0}


async def test_export_without_history_names_the_missing_setting(edge: Edge) -> None:
    answer = await edge("tags", "export", "a")
    assert answer.exit_code == 2
    assert "Set [telemetry] history_days" in answer.output


async def test_export_without_samples_names_the_machine_that_keeps_them(
    edge: Edge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a gateway that does not evaluate the rules it printed the header only."""
    monkeypatch.setenv("EDGE_TELEMETRY__HISTORY_DAYS", "7")
    monkeypatch.setenv("EDGE_TELEMETRY__HISTORY_DIRECTORY", str(tmp_path / "history"))
    answer = await edge("tags", "export", "wrench.*", "--format", "json")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "on the machine of the gateway that evaluates the rules" in answer.stderr


def test_gzip_command_reads_an_exported_file(tmp_path: Path) -> None:
    append_samples(tmp_path, SAMPLES, 1 << 30)
    (file,) = tmp_path.iterdir()
    content = subprocess.run(["gzip", "-dc", str(file)], capture_output=True, check=True).stdout
    with na.ArrayStream.from_readable(content) as stream:
        assert len(stream.read_all()) == 4
