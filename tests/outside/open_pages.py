"""Keeps pages of a gateway open as browsers do: they follow the changes, and read again what they show.

`python -m tests.outside.open_pages PORT NUMBER USER... ` prints `open` when all follow, and runs until it is stopped.
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator
from urllib.parse import urlencode

PASSWORD = "correct horse"
LEAST_S = 0.15
"""Between two readings of a page, as in page.js."""
SHOWN = ("/", "/jobs")


async def _send(port: int, lines: str, body: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{lines}\r\nhost: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    return reader, writer


async def log_in(port: int, name: str) -> str:
    """Return the cookie of a login. Raises ConnectionError when it is refused."""
    form = urlencode({"name": name, "password": PASSWORD})
    kind = "content-type: application/x-www-form-urlencoded\r\nconnection: close"
    reader, writer = await _send(port, f"POST /login HTTP/1.1\r\n{kind}", form)
    answer = (await reader.read()).decode()
    writer.close()
    cookies = [line for line in answer.splitlines() if line.lower().startswith("set-cookie: ")]
    if not cookies:
        raise ConnectionError(answer[:200])
    return cookies[0].partition(": ")[2].partition(";")[0]


async def read(port: int, cookie: str, path: str) -> None:
    """Read a page as one that is open does."""
    reader, writer = await _send(port, f"GET {path} HTTP/1.1\r\ncookie: {cookie}\r\nx-live: 1\r\nconnection: close")
    answer = await reader.read()
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(answer[:100].decode())


async def changes(port: int, cookie: str, is_open: asyncio.Event) -> AsyncIterator[list[str]]:
    """Yield the subjects of each notice."""
    reader, _ = await _send(port, f"GET /api/v1/events?live HTTP/1.1\r\ncookie: {cookie}")
    event = ""
    while line := (await reader.readline()).decode().strip("\r\n"):
        if line.startswith("HTTP/") and " 200 " not in line:
            raise ConnectionError(line)
    is_open.set()
    async for raw in reader:
        line = raw.decode().strip()
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: ") and event == "change":
            yield json.loads(line.removeprefix("data: "))["subjects"]


async def keep_open(port: int, cookie: str, path: str, is_open: asyncio.Event) -> None:
    """Keep one page open."""
    last = 0.0
    async for _ in changes(port, cookie, is_open):
        await asyncio.sleep(LEAST_S - (time.monotonic() - last))
        last = time.monotonic()
        await read(port, cookie, path)


async def main(port: int, number: int, names: list[str]) -> None:
    """Keep pages open until one fails."""
    are_open = [asyncio.Event() for _ in range(number)]
    # The windows of one browser share its login.
    cookies = [await log_in(port, name) for name in names]
    pairs = itertools.cycle(itertools.product(SHOWN, cookies))
    async with asyncio.TaskGroup() as tasks:
        for is_open, (path, cookie) in zip(are_open, pairs, strict=False):
            tasks.create_task(keep_open(port, cookie, path, is_open))
        for is_open in are_open:
            await is_open.wait()
        sys.stdout.write("open\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
