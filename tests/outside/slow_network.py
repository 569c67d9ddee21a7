"""A TCP proxy that behaves like a bad network: delay, stalls where packets are lost, and broken connections."""

import contextlib
import random
import socket
import threading
import time
from types import TracebackType
from typing import Self

_DELAY_S = 0.1
_STALL_S = 0.6
_LOSS = 0.05


class SlowNetwork:
    """Forwards the connections to a port of the loopback address; a lost packet delays all that follow it."""

    def __init__(self, target: int) -> None:
        self.forwarded = 0
        self._target = target
        self._chance = random.Random(1)
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """Start to forward."""
        self._start(self._accept)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Stop, and wait for the threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def cut(self) -> None:
        """Break every connection."""
        for item in tuple(self._open):
            with contextlib.suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += (near, far)
                self._start(self._forward, near, far)
                self._start(self._forward, far, near)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(_DELAY_S + (_STALL_S if self._chance.random() < _LOSS else 0.0))
                target.sendall(data)
                self.forwarded += len(data)
        for element in (source, target):
            with contextlib.suppress(OSError):
                element.shutdown(socket.SHUT_RDWR)
        source.close()
