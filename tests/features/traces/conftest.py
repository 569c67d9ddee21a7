"""The fixtures of equipment, simulated devices, and those of commands: a store with settings, and a caller."""

from tests.cli.conftest import *  # noqa: F403
from tests.equipment.conftest import *  # noqa: F403
