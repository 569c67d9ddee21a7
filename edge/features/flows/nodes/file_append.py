"""`file.append`: appends its input to a file of the gateway."""

import re
from collections.abc import Iterable

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import AppendToFile

_FILE = re.compile(r"[\w][\w.-]*\.(csv|arrows\.gz)")


class FileAppendConfig(NodeConfig, frozen=True):
    """The name of the file in the gateway's folder of flow files; its ending is `.csv` or `.arrows.gz`, its format."""

    file: str


def _faults(config: FileAppendConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    if not _FILE.fullmatch(config.file):
        yield f"{config.file!r} is not a file name; use letters, digits, '.', '-', '_', ending .csv or .arrows.gz"


def _action(config: FileAppendConfig, attempt: Attempt) -> AppendToFile:
    return AppendToFile(config.file, attempt.input)


KIND = NodeKind(
    "file.append",
    "Appends its input to a file.",
    FileAppendConfig,
    Inputs.ONE,
    Act(_action),
    repeatable=False,
    faults=_faults,
)
