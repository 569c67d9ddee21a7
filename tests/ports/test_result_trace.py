"""Traces in results, and their files."""

import gzip
import json
from typing import Any

import pytest

from edge.ports.result_trace import (
    ResultTrace,
    TraceChannel,
    encode_trace,
    may_hold_files,
    read_trace,
    stored_in,
    without_files,
)

CHANNEL: dict[str, Any] = {"name": "Torque", "unit": "N·m", "interval_ms": 1.0, "values": [0.0, 1.5]}
REFERENCE = {"points": 2, "channels": ["Torque"], "file": "J1/a.json.gz", "sha256": "a", "size": 3}


@pytest.mark.parametrize(
    "data", [None, "text", {}, REFERENCE, {"channels": [{"name": "x"}]}, {"channels": [{"name": "x", "values": ["a"]}]}]
)
def test_members_without_channels_are_not_read_as_a_trace(data: Any) -> None:
    assert read_trace(data) is None


def test_file_is_gzipped_json_and_the_same_each_time() -> None:
    trace = read_trace({"channels": [CHANNEL]})
    assert trace is not None
    content = encode_trace(trace, {"job": "J1"})
    assert content == encode_trace(ResultTrace(channels=(TraceChannel(**CHANNEL),)), {"job": "J1"})
    found = json.loads(gzip.decompress(content))
    assert found == {"format": "microdcs-edge trace 1", "job": "J1", "channels": [CHANNEL]}


@pytest.mark.parametrize("data", [{"file": "a", "sha256": "b"}, {"points": "x", "channels": []}, 3, None])
def test_trace_member_without_file_reference_is_ignored(data: Any) -> None:
    assert [*stored_in({"trace": data, "x": data})] == []


def test_references_of_a_batch_are_found() -> None:
    result = {"results": {"1": {"trace": REFERENCE}, "2": {"trace": {"points": 2, "channels": []}}}}
    assert [reference.file for reference in stored_in(result)] == ["J1/a.json.gz"]


@pytest.mark.parametrize(
    "data",
    [
        {"trace": {"channels": [CHANNEL]}},
        {"file": {"sha256": "a"}},
        {"results": {"1": {"trace": {"channels": [CHANNEL]}}}},
    ],
)
def test_result_with_a_trace_a_file_or_parts_may_hold_files(data: Any) -> None:
    assert may_hold_files(data)


@pytest.mark.parametrize("data", [{"torque": 85.2}, {}, ["trace"], "trace", None])
def test_other_result_holds_no_files(data: Any) -> None:
    assert not may_hold_files(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (7, 7),
        ({"torque": 1}, {"torque": 1}),
        ({"torque": 1, "trace": REFERENCE, "file": "x"}, {"torque": 1}),
        ({"results": {"1": {"trace": {"channels": [CHANNEL]}}, "2": 3}}, {"results": {"1": {}, "2": 3}}),
        ({"results": [1]}, {"results": [1]}),
    ],
)
def test_result_without_its_files_has_its_other_members(data: Any, expected: Any) -> None:
    assert without_files(data) == expected
