"""The fixtures of the OPC UA server: the tests of this folder use the same server."""

from tests.uaserver.conftest import *  # noqa: F403
