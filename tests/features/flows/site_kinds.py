"""A node kind of a site, as a file; and the kinds of a gateway that knows it."""

from pathlib import Path

CHECK = """
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeError, NodeKind, Output
from edge.features.flows.nodes.progress import report_progress

LEAKED = []
print("imported")

def report_for(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        report_progress(50, "from a thread")

class CheckConfig(NodeConfig, frozen=True):
    how: str = "adds"
    file: str = ""

def run(config: CheckConfig, attempt: Attempt) -> Output:
    print("runs")
    if config.how == "returns NaN":
        return Output(float("nan"))
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
    if config.how == "forks" and os.fork() == 0:
        report_progress(1, "of the fork")
        return Output("of the fork")
    if config.how == "threads":
        threads = [threading.Thread(target=report_for, args=(0.3,)) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    if config.how == "outlives":
        threading.Thread(target=report_for, args=(60,), daemon=True).start()
    if config.how == "reads":
        return Output(sys.stdin.read())
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
