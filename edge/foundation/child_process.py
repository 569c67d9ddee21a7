"""The environment of the child processes that import node kinds of a site."""

import os
import sys


def child_environment() -> dict[str, str]:
    """Return the environment of this process, with its module path: the package is installed outside of Python's."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
