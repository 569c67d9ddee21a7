"""`tag.write` writes its input to a tag."""

import pytest

from edge.features.flows.nodes.outside import WriteTag
from edge.features.flows.nodes.tag_write import KIND
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"tag": "t"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == WriteTag("t", 5)


@pytest.mark.parametrize("config", [{}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
