"""What the nodes of a gateway read from and act on."""

import pytest

from tests.cli.conftest import *  # noqa: F403
from tests.features.flows.gateways import FakeOutside


@pytest.fixture
def outside() -> FakeOutside:
    """What the nodes of one gateway read from and act on."""
    return FakeOutside()
