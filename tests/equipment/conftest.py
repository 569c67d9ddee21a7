"""A simulated tightening controller for the modules that test equipment of its kind."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from edge.features.joining.simulated.controller import JoiningController, open_ijt
from edge.features.vision.simulated.camera import VisionCamera, open_vision
from tests.conftest import WaitUntil
from tests.equipment.contract import Opener
from tests.equipment.tightening import equipped


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[JoiningController]:
    """A controller that ends no joining by itself."""
    async with open_ijt(delay=None) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def camera() -> AsyncIterator[VisionCamera]:
    """A camera that ends no job by itself."""
    async with open_vision(delay=None, content=(True, 3)) as running:
        yield running


@pytest.fixture
def opener(controller: JoiningController, wait_until: WaitUntil) -> Opener:
    """Connects tightening equipment to the controller; modules of other kinds define their own."""
    return partial(equipped, controller, wait_until)
