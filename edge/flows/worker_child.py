"""The program in which the node kinds of a site run: `python -m edge.flows.worker_child FOLDER`.

Its parent writes one JSON line for each attempt and reads the answer; it kills this process to end an attempt.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

import msgspec

from edge.flows.nodes import progress
from edge.flows.nodes.kind import Attempt, Compute, NodeError
from edge.flows.nodes.registry import NodeKinds
from edge.flows.plugins import load_kinds

LARGEST_OUTPUT: Final = 1 << 20
"""In bytes of JSON."""
_PR_SET_PDEATHSIG: Final = 1


class _Terminated(BaseException):
    """The attempt was terminated; the code of a node does not catch this by accident."""


def main() -> None:
    """Answer attempts until the parent closes the pipe."""
    # An attempt must not outlive its worker: another one takes it over.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a node prints must not reach the parent as an answer.
    os.dup2(2, 1)
    kinds = load_kinds(sys.argv[1])
    for line in sys.stdin:
        _write(answers, answer(kinds, json.loads(line), answers))


def answer(kinds: NodeKinds, asked: Mapping[str, Any], answers: TextIO) -> dict[str, Any]:
    """Run an attempt and return its answer: `output` with `memory`, or `failed`."""

    def report(percent: int, message: str) -> None:
        _write(answers, {"progress": percent, "message": message})
        if json.loads(sys.stdin.readline() or '{"stop": true}')["stop"]:
            raise _Terminated

    kind = kinds[asked["kind"]]
    progress.report_to(report)
    if not isinstance(kind.work, Compute):
        return {"failed": f"{kind.name} does not run in a worker"}
    try:
        config = msgspec.convert(asked["config"], kind.config)
        output = kind.work.run(config, Attempt(**asked["attempt"]))
        return {"output": _plain(output.value), "memory": _plain(output.memory)}
    except _Terminated:
        return {"failed": "terminated"}
    except NodeError as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": "the node needs more memory than it may have"}
    except Exception as error:  # noqa: BLE001 - whatever the code of a node raises is its reason
        return {"failed": f"{type(error).__name__}: {error}"}


def _plain(value: Any) -> Any:
    """Return a value that is JSON; raises NodeError for anything else: huge, cyclic, NaN, or of another type."""
    parts, size = [], 0
    try:
        for part in json.JSONEncoder(allow_nan=False, ensure_ascii=False).iterencode(value):
            size += len(part.encode())
            parts.append(part)
            if size > LARGEST_OUTPUT:
                raise NodeError(f"the output has more than {LARGEST_OUTPUT} bytes of JSON")
    except (TypeError, ValueError, RecursionError) as error:
        raise NodeError(f"the output is no JSON: {error}") from None
    return json.loads("".join(parts))


def _write(answers: TextIO, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        answers.write(json.dumps(message) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
