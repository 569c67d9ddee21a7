"""The fixtures of commands: a store with settings, and a caller."""

from tests.cli.conftest import *  # noqa: F403
