"""The program in which the node kinds of a site run: `python -m edge.features.flows.worker_child FOLDER [EXCLUDED …]`.

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
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from edge.features.flows.nodes import progress
from edge.features.flows.nodes.kind import Attempt, Compute, NodeError
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.plugins import read_kinds
from edge.features.flows.site_output import checked_output, reason_of
from edge.foundation.text import Text

_LONGEST_REASON: Final = 1000
_PROGRESS_INTERVAL_S: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1

Report = Callable[[int, str], None]


class _Terminated(BaseException):
    """The attempt was terminated; the code of a node does not catch this by accident."""


class _ParentPipe:
    """The pipe to the parent; threads of a node share it, processes that a node forks do not use it."""

    def __init__(self) -> None:
        """Replace the standard streams: what a node reads or prints there must not become part of an answer."""
        self._requests = os.fdopen(os.dup(0), encoding="utf-8")
        self._answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._is_running = False
        self._due = 0.0

    def write(self, message: Mapping[str, Any]) -> None:
        """Write one line."""
        with contextlib.suppress(BrokenPipeError):
            self._answers.write(json.dumps(message) + "\n")
            self._answers.flush()

    def attempts(self) -> Iterator[Mapping[str, Any]]:
        """Yield the attempts to run until the parent closes the pipe."""
        for line in self._requests:
            self._is_running = True
            yield json.loads(line)

    def report(self, percent: int, message: str) -> None:
        """Report progress of the attempt in progress, a few times in a second at most."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            # A thread may outlive its attempt.
            if not self._is_running or time.monotonic() < self._due:
                return
            self._due = time.monotonic() + _PROGRESS_INTERVAL_S
            self.write({"progress": percent, "message": _text(message)})
            if json.loads(self._requests.readline() or '{"stop": true}')["stop"]:
                raise _Terminated

    def finish(self, message: Mapping[str, Any]) -> None:
        """Write the answer to the attempt; a process that the node has forked ends here."""
        if os.getpid() != self._pid:
            os._exit(0)
        with self._lock:
            self._is_running = False
            self.write(message)


def main(arguments: Sequence[str]) -> None:
    """Answer attempts until the parent closes the pipe, or check the kinds."""
    # An attempt must not outlive its worker: another one takes it over.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    pipe = _ParentPipe()
    match arguments:
        case ["--check", limit_mb, folder, *excluded]:
            size = int(limit_mb) << 20
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
            site_kinds = read_kinds(folder, excluded, lambda origin: pipe.write({"importing": origin}))
            pipe.finish({"faults": {origin: _text(fault) for origin, fault in site_kinds.faults.items()}})
            # A thread that an import has started must not keep this process.
            os._exit(0)
        case [folder, *excluded]:
            kinds = read_kinds(folder, excluded).kinds
            pipe.finish({"ready": True})
            for asked in pipe.attempts():
                pipe.finish(answer(kinds, asked, pipe.report))
        case _:
            raise SystemExit(__doc__)


def answer(kinds: NodeKinds, asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Run an attempt and return its answer: `output` with `withheld` and `memory`, or `failed`.

    `failed` is the reason, where it has a text in each language as the array of `Text`.
    With `spent` the process has no memory left and must not be used again.
    """
    progress.report_to(report)
    try:
        kind = kinds[asked["kind"]]
        if not isinstance(kind.work, Compute):
            return {"failed": _stated(Text.of("{kind} does not run in a worker", kind=kind.name))}
        config = msgspec.convert(asked["config"], kind.config)
        output = checked_output(kind.work.run(config, Attempt(**asked["attempt"])))
        return {
            "output": output.value,
            "withheld": output.withheld.value if output.withheld else None,
            "memory": output.memory,
        }
    except _Terminated:
        return {"failed": "terminated"}
    except MemoryError:
        return {"failed": _stated(Text.of("the node needs more memory than it may have")), "spent": True}
    except NodeError as error:
        return {"failed": _stated(error.text)}
    except Exception as error:  # noqa: BLE001 - whatever the code of a node raises is its reason
        return {"failed": _text(reason_of(error))}


def _stated(reason: Text) -> Any:
    """Return a reason for each language; one that is too long, or not for every JSON encoder, as English."""
    shown = _text(reason)
    return msgspec.to_builtins(reason) if shown == str(reason) else shown


def _text(value: object) -> str:
    """Return a text that every JSON encoder takes, and that is not too long."""
    return str(value)[:_LONGEST_REASON].encode(errors="backslashreplace").decode()


if __name__ == "__main__":
    main(sys.argv[1:])
