"""The program in which the node kinds of a site run: `python -m edge.flows.worker_child FOLDER [EXCLUDED …]`.

Its parent writes one JSON line for each attempt and reads the answer; it kills this process to end an attempt. With
`--check MB FOLDER [EXCLUDED …]` it only imports the kinds, and writes the origin of each before and all faults at last.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

import msgspec

from edge.flows.nodes import progress
from edge.flows.nodes.kind import Attempt, Compute, NodeError
from edge.flows.nodes.registry import NodeKinds
from edge.flows.plugins import read_kinds

LARGEST_OUTPUT: Final = 1 << 20
"""In bytes of JSON."""
LARGEST_MEMORY: Final = 1 << 16
"""In bytes of JSON; what a node remembers is written in every cycle."""
_LONGEST_REASON: Final = 1000
_PROGRESS_INTERVAL_S: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1

Report = Callable[[int, str], None]


class _Terminated(BaseException):
    """The attempt was terminated; the code of a node does not catch this by accident."""


def main(arguments: Sequence[str]) -> None:
    """Answer attempts until the parent closes the pipe, or check the kinds."""
    # An attempt must not outlive its worker: another one takes it over.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a node prints must not reach the parent as an answer.
    os.dup2(2, 1)
    match arguments:
        case ["--check", limit_mb, folder, *excluded]:
            size = int(limit_mb) << 20
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
            found = read_kinds(folder, excluded, lambda origin: _write(answers, {"importing": origin}))
            _write(answers, {"faults": {origin: _text(fault) for origin, fault in found.faults.items()}})
            # A thread that an import has started must not keep this process.
            os._exit(0)
        case [folder, *excluded]:
            kinds = read_kinds(folder, excluded).kinds
            _write(answers, {"ready": True})
            for line in sys.stdin:
                _write(answers, answer(kinds, json.loads(line), _reporter(answers)))
        case _:
            raise SystemExit(__doc__)


def _reporter(answers: TextIO) -> Report:
    """Return a function that reports progress to the parent, a few times in a second at most."""
    due = 0.0

    def report(percent: int, message: str) -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + _PROGRESS_INTERVAL_S
        _write(answers, {"progress": percent, "message": _text(message)})
        if json.loads(sys.stdin.readline() or '{"stop": true}')["stop"]:
            raise _Terminated

    return report


def answer(kinds: NodeKinds, asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Run an attempt and return its answer: `output` with `withheld` and `memory`, or `failed`.

    With `spent` the process has no memory left and must not be used again.
    """
    progress.report_to(report)
    try:
        kind = kinds[asked["kind"]]
        if not isinstance(kind.work, Compute):
            return {"failed": f"{kind.name} does not run in a worker"}
        config = msgspec.convert(asked["config"], kind.config)
        output = kind.work.run(config, Attempt(**asked["attempt"]))
        return {
            "output": _plain(output.value, "output", LARGEST_OUTPUT),
            "withheld": output.withheld.value if output.withheld else None,
            "memory": _plain(output.memory, "memory", LARGEST_MEMORY),
        }
    except _Terminated:
        return {"failed": "terminated"}
    except NodeError as error:
        return {"failed": _text(error)}
    except MemoryError:
        return {"failed": "the node needs more memory than it may have", "spent": True}
    except Exception as error:  # noqa: BLE001 - whatever the code of a node raises is its reason
        return {"failed": _text(f"{type(error).__name__}: {error}")}


def _text(value: object) -> str:
    """Return a text that every JSON encoder takes, and that is not too long."""
    return str(value)[:_LONGEST_REASON].encode(errors="backslashreplace").decode()


def _plain(value: Any, name: str, most: int) -> Any:
    """Return a value that is JSON; raises NodeError for anything else: huge, cyclic, NaN, or of another type."""
    parts, size = [], 0
    try:
        for part in json.JSONEncoder(allow_nan=False, ensure_ascii=False).iterencode(value):
            size += len(part.encode())
            parts.append(part)
            if size > most:
                raise NodeError(f"the {name} has more than {most} bytes of JSON")
        found = json.loads("".join(parts))
        # The store takes no number of more than 64 bits.
        msgspec.json.encode(found)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NodeError(f"the {name} is no JSON: {error}") from None
    return found


def _write(answers: TextIO, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        answers.write(json.dumps(message) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
