"""`edge fleet upgrade` refuses a text without a signature."""

import os
import subprocess
import sys


def test_text_without_a_signature_is_refused() -> None:
    command = [sys.executable, "-m", "edge", "fleet", "upgrade"]
    ran = subprocess.run(command, input="nonsense\n", capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode != 0
    if os.geteuid():
        assert "only root installs packages" in ran.stderr
    else:
        assert '"state":"refused"' in ran.stdout
