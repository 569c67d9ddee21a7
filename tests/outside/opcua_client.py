"""Starts the OPC UA client of another vendor (node-opcua) as a process."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.outside.servers import ROOT


def opcua_client(port: int, *arguments: str) -> subprocess.Popen[str]:
    """Start the OPC UA client."""
    installed = ROOT / ".node" / "node_modules"
    assert installed.is_dir(), "run make setup: it installs node-opcua-client"
    return subprocess.Popen(
        ["node", Path(__file__).with_name("opcua_client.js"), f"opc.tcp://127.0.0.1:{port}", *arguments],
        env={"PATH": os.environ["PATH"], "NODE_PATH": str(installed)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_line(process: subprocess.Popen[str]) -> Any:
    """Return the next line of the client."""
    assert process.stdout
    line = process.stdout.readline()
    assert line, f"the client ended with {process.wait()}"
    return json.loads(line)
