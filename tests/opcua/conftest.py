"""The fixtures of the server's tests: what is tested here runs in the same server."""

from tests.uaserver.conftest import *  # noqa: F403
