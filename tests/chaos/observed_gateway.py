"""Runs `edge` so that SIGUSR2 logs the stack of each task and the state of each MQTT session."""

import asyncio
import json
import runpy
import signal
import sys

from tests.chaos import stacks

LOGGED = "stacks logged"


def _log_stacks(_number: int, _frame: object) -> None:
    for name, frames in stacks.tasks_of(asyncio.get_running_loop()):
        _log("task", name=name, frames=frames)
    for session in stacks.sessions_of(asyncio.get_running_loop()):
        _log("session", state=session)
    _log(LOGGED)


def _log(event: str, **fields: object) -> None:
    record = {"event": event, "level": "info", "logger": "chaos"} | fields
    sys.stderr.write(f"{json.dumps(record)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, _log_stacks)
    runpy.run_module("edge", run_name="__main__", alter_sys=True)
