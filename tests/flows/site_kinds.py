"""A node kind of a site, as a file; and the kinds of a gateway that knows it."""

from pathlib import Path

CHECK = """
import subprocess
import time
from pathlib import Path
from edge.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeError, NodeKind, Output
from edge.flows.nodes.progress import report_progress

LEAKED = []

class CheckConfig(NodeConfig, frozen=True):
    how: str = "adds"
    file: str = ""

def run(config: CheckConfig, attempt: Attempt) -> Output:
    if config.how == "waits":
        while True:
            report_progress(50, "waiting")
    if config.how == "once" and not Path(config.file).exists():
        Path(config.file).write_text("")
        time.sleep(3600)
    if config.how == "hangs":
        time.sleep(3600)
    if config.how == "works":
        time.sleep(0.5)
    if config.how == "leaks":
        LEAKED.append(bytearray(150 << 20))
    if config.how == "spawns":
        return Output(subprocess.Popen(["sleep", "3600"]).pid)
    if config.how == "fails":
        raise NodeError("not good")
    if config.how == "dies":
        raise SystemExit(3)
    return Output(sum(attempt.input), memory=attempt.number)

KIND = NodeKind("site.check", "Checks.", CheckConfig, Inputs.ONE, Compute(run), repeatable=True)
"""


def write_check(folder: Path, *, repeatable: bool = True) -> str:
    """Write the kind to a folder; return the name of the folder."""
    (folder / "check.py").write_text(CHECK.replace("repeatable=True", f"repeatable={repeatable}"))
    return str(folder)
