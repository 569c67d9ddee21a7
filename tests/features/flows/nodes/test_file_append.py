"""`file.append` appends its input to a file of the gateway."""

import pytest

from edge.features.flows.nodes.file_append import KIND
from edge.features.flows.nodes.outside import AppendToFile
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"file": "report.csv"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == AppendToFile("report.csv", 5)


def test_column_format_is_chosen_by_the_file_suffix() -> None:
    assert configure(KIND, {"file": "report.arrows.gz"}) == []


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"file": "../report.csv"},
        {"file": "/etc/x.csv"},
        {"file": "report.exe"},
        {"file": ".csv"},
        {"file": "r.parquet"},
    ],
)
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
