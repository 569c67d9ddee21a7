"""A node kind of a site, as a file; and the kinds of a gateway that knows it."""

from pathlib import Path

CHECK = """
from edge.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeError, NodeKind, Output
from edge.flows.nodes.progress import report_progress

class CheckConfig(NodeConfig, frozen=True):
    how: str = "adds"

def run(config: CheckConfig, attempt: Attempt) -> Output:
    if config.how == "waits":
        while True:
            report_progress(50, "waiting")
    if config.how == "fails":
        raise NodeError("not good")
    if config.how == "dies":
        raise SystemExit(3)
    return Output(sum(attempt.input), memory=attempt.number)

KIND = NodeKind("site.check", "Checks.", CheckConfig, Inputs.ONE, Compute(run))
"""


def write_check(folder: Path) -> str:
    """Write the kind to a folder; return the name of the folder."""
    (folder / "check.py").write_text(CHECK)
    return str(folder)
