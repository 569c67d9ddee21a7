"""A child process finds the modules of its parent in every installation."""

import subprocess
import sys
from pathlib import Path

import pytest

from edge.foundation.child_process import child_environment


def test_child_imports_modules_from_the_path_of_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("print('found')")
    monkeypatch.syspath_prepend(tmp_path)
    command = (sys.executable, "-c", "import only_here, edge.features.flows.worker_child")
    found = subprocess.run(command, env=child_environment(), cwd="/", capture_output=True, text=True, check=True)
    assert found.stdout == "found\n"
