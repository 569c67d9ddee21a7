"""The fixtures of equipment: simulated devices."""

from tests.equipment.conftest import *  # noqa: F403
