"""A plant of gateways on an empty flow state in memory."""

import pytest

from tests.features.flows.gateways import FakeOutside, Plant
from tests.features.flows.memory_state import MemoryFlowState
from tests.uaserver.conftest import client, space  # noqa: F401 - fixtures


@pytest.fixture
def plant() -> Plant:
    """Gateways on a flow state in memory."""
    return Plant(MemoryFlowState())


@pytest.fixture
def outside() -> FakeOutside:
    """What the nodes of one gateway read from and act on."""
    return FakeOutside()
