"""A gateway of the plant is heard, also when it is started while its predecessor still ends."""

import sys
import threading
from pathlib import Path

from tests.outside.servers import Gateway, wait_for

_PROGRAM = """
import os, signal, socket, sys, time
from pathlib import Path

here = Path(os.environ["NOTIFY_SOCKET"]).parent

def until(name):
    while not (here / name).exists():
        time.sleep(0.01)

def end(*_):
    (here / "asked to end").touch()
    until("may end")
    sys.exit()

signal.signal(signal.SIGTERM, end)
if (here / "first").exists():
    (here / "second").touch()
    until("may be ready")
(here / "first").touch()
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service_manager:
    service_manager.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
until("never")
"""


def test_readiness_of_a_successor_is_heard_while_the_former_one_ends(tmp_path: Path) -> None:
    """The end of the former one closed the socket of its successor, which then counted as not ready."""
    gateway = Gateway(tmp_path, "first", "")
    gateway.within = (sys.executable, "-c", _PROGRAM)
    gateway.start()
    ending = threading.Thread(target=gateway.stop)
    ending.start()
    wait_for((tmp_path / "asked to end").exists, "the first one is asked to end")
    starting = threading.Thread(target=gateway.start)
    starting.start()
    try:
        wait_for((tmp_path / "second").exists, "the second one runs")
        (tmp_path / "may end").touch()
        ending.join(30)
        (tmp_path / "may be ready").touch()
        starting.join(5)
        assert not starting.is_alive()
    finally:
        gateway.kill()
        starting.join(30)
