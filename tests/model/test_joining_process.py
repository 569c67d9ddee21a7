"""The joining process is read from the first parameter that selects one."""

from typing import Any

import pytest

from edge.model.joining_process import joining_process_of


@pytest.mark.parametrize(
    ("parameters", "process"),
    [
        ({"joining_process_id": "JP-1", "selection_name": "other"}, "JP-1"),
        ({"joining_process_id": "", "selection_name": 7}, "7"),
        ({"torque": 85}, None),
        ({}, None),
    ],
)
def test_joining_process_is_read_from_the_parameters(parameters: dict[str, Any], process: str | None) -> None:
    assert joining_process_of(parameters) == process
