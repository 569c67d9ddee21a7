"""The fixtures of the server tests: the tests of this folder use the same server."""

from tests.uaserver.conftest import *  # noqa: F403
