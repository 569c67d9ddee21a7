"""Settings of a reader: conflicts are reported."""

from typing import Any

import pytest

from edge.config import Settings
from edge.features.readers.settings import ReaderSettings


def conflicts(**keys: Any) -> list[str]:
    values: dict[str, Any] = {"type_ids": ("scanned.v1",), "url": "tcp://10.0.0.7:2001"} | keys
    return list(map(str, ReaderSettings(kind="reader", **values).conflicts(Settings())))


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"url": "serial:///dev/ttyUSB0", "baud": 115200},
        {"starts": "order"},
        {"pattern": r"(?P<vin>\w{17})"},
        {"starts": "order", "pattern": r"(?P<vin>\w{17})", "job_id": "vin"},
        {"starts": "order", "gs1": "auto", "job_id": "gs1_21"},
    ],
)
def test_valid_settings_have_no_conflict(keys: dict[str, Any]) -> None:
    assert conflicts(**keys) == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"type_ids": ("a", "b")}, "type_ids"),
        ({"baud": 9601}, "baud"),
        ({"starts": "work_master"}, "work_master"),
        ({"work_master": "WM"}, "work_master"),
        ({"scope": "elsewhere"}, "scope"),
        ({"pattern": "("}, "pattern"),
        ({"pattern": r"(?P<vin>\w{17})", "job_id": "vin"}, "job_id"),
        ({"starts": "order", "pattern": r"(?P<vin>\w{17})", "job_id": "van"}, "job_id"),
        ({"starts": "order", "job_id": "gs1_21"}, "job_id"),
        ({"starts": "order", "gs1": "auto", "job_id": "gs1_2"}, "job_id"),
        ({"url": "tcp://10.0.0.7"}, "url"),
        ({"url": "serial://ttyUSB0"}, "url"),
    ],
)
def test_conflict_is_reported_with_its_key(keys: dict[str, Any], expected: str) -> None:
    (found,) = conflicts(**keys)
    assert found.partition(":")[0] == expected
