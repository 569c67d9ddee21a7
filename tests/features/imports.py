"""What a process imports of a feature."""

import subprocess
import sys

_LIGHT = ("feature", "messages", "settings")
"""Modules that are read in any case: what a feature declares, and its section of the settings."""


def imported_with(modules: str, feature: str) -> set[str]:
    """Return the modules of a feature that a fresh process has after it imported others, apart from the light ones."""
    code = (
        f"import sys, {modules}; print(*(name for name in sys.modules if name.startswith('edge.features.{feature}.')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in found.stdout.split() if not name.endswith(_LIGHT)}
