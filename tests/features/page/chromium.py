"""Drives a headless Chromium over its debugging pipe: no driver, no further dependency."""

import asyncio
import json
import os
import shutil
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

EXECUTABLE = shutil.which("chromium-headless-shell") or shutil.which("chromium")
DEADLINE_S = 60.0


class Chromium:
    """A running browser with one page; calls are those of the Chrome DevTools Protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._session = ""
        self.faults: list[str] = []
        """Errors of scripts, and violations of the content security policy, since the start."""

    async def receive(self) -> None:
        """Receive answers and events until the browser ends."""
        while message := (await self._reader.readuntil(b"\0")).rstrip(b"\0"):
            found = json.loads(message)
            if waiting := self._answers.pop(found.get("id", 0), None):
                waiting.set_result(found)
            elif found.get("method") == "Runtime.exceptionThrown":
                self.faults.append(str(found["params"]["exceptionDetails"]))
            elif found.get("method") == "Log.entryAdded" and found["params"]["entry"]["source"] == "security":
                self.faults.append(found["params"]["entry"]["text"])

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(DEADLINE_S):
            found = await answer
        assert "error" not in found, found
        result: dict[str, Any] = found["result"]
        return result

    async def open_page(self) -> None:
        """Open the page on which all further calls work."""
        target = (await self.call("Target.createTarget", url="about:blank"))["targetId"]
        attached = await self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def show(self, width: int, height: int, *, dark: bool = False, language: str = "en") -> None:
        """Set the size of the screen, its colours and the language of the person."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        await self.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})

    async def go(self, url: str) -> None:
        """Open an address and wait until its scripts have run."""
        await self.run("window.old = true")
        await self.call("Page.navigate", url=url)
        await self.until("!window.old && document.readyState === 'complete'")

    async def run(self, expression: str) -> Any:
        """Return the value of an expression on the page; a promise is awaited."""
        found = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression on the page is true."""
        async with asyncio.timeout(DEADLINE_S):
            while not await self._is_true(expression):  # noqa: ASYNC110 - the page sets no event of ours
                await asyncio.sleep(0.05)

    async def _is_true(self, expression: str) -> bool:
        # A navigation ends the context of an expression.
        found = await self.call("Runtime.evaluate", expression=f"Boolean({expression})", returnByValue=True)
        return found["result"].get("value") is True

    async def press(self, key: str) -> None:
        """Press a key: `Tab`, `Enter`, `Escape` or a letter."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}.get(key, 0)
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def tap(self, selector: str) -> None:
        """Touch the middle of an element with one finger, and lift it."""
        await self.touch(selector)
        await self.lift()

    async def touch(self, selector: str) -> None:
        """Put one finger on the middle of an element."""
        place = await self.place(selector)
        await self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[place])

    async def lift(self) -> None:
        """Lift every finger."""
        await self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    async def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        place = await self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    async def place(self, selector: str) -> dict[str, float]:
        """Scroll to an element as a person does, and return its middle; something else must not cover it.

        Controls that have just moved take no tap: a person sees them first.
        """
        found = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{found} && !document.documentElement.matches('[data-moved]')")
        await self.run(
            f"(() => {{ const box = {found}.getBoundingClientRect(); if (box.top < 70 || box.bottom > innerHeight)"
            f" {found}.scrollIntoView({{block: 'center'}}) }})()"
        )
        place: dict[str, float] = await self.run(
            f"(() => {{ const box = {found}.getBoundingClientRect();"
            " return {x: box.x + box.width / 2, y: box.y + box.height / 2} })()"
        )
        at = f"document.elementFromPoint({place['x']}, {place['y']})"
        assert await self.run(f"{found}.contains({at}) || {at}?.contains({found})"), selector
        return place

    async def hold_key(self, key: str, until: str) -> None:
        """Hold a key until an expression is true."""
        code = {"Enter": 13, " ": 32}[key]
        await self.call("Input.dispatchKeyEvent", type="rawKeyDown", key=key, windowsVirtualKeyCode=code)
        await self.until(until)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def scan(self, code: str) -> None:
        """Type a code as a reader does: keys without a pause, and Enter."""
        calls = []
        for key in (*code, "Enter"):
            text = "\r" if key == "Enter" else key
            calls.append(self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text))
            calls.append(self.call("Input.dispatchKeyEvent", type="keyUp", key=key))
        await asyncio.gather(*calls)

    async def type(self, text: str) -> None:
        """Type a text into the element that has the focus."""
        await self.call("Input.insertText", text=text)

    async def screenshot(self, file: Path) -> None:
        """Write the whole page as PNG."""
        found = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        await asyncio.to_thread(file.write_bytes, b64decode(found["data"]))

    async def log_in(self, origin: str, name: str, password: str) -> None:
        """Log in by the form of name and password, with the keyboard."""
        await self.go(f"{origin}/login?password")
        await self.until("document.activeElement.name === 'name'")
        for text in (name, password):
            await self.type(text)
            await self.press("Tab")
        await self.press("Enter")
        await self.until("location.pathname === '/' && document.readyState === 'complete'")


@asynccontextmanager
async def chromium() -> AsyncIterator[Chromium]:
    """Run a browser with an empty profile for the length of the block."""
    assert EXECUTABLE, "run make setup: it installs Chromium"
    to_browser, from_browser = os.pipe(), os.pipe()
    arguments = ("--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--headless")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads descriptor 3 and writes descriptor 4.
        command = f'exec "$0" "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command, EXECUTABLE, *arguments, f"--user-data-dir={profile}", "about:blank"),
            pass_fds=(to_browser[0], from_browser[1]),
            stderr=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 26)
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_browser[0], "rb")
        )
        outgoing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(to_browser[1], "wb")
        )
        browser = Chromium(reader, asyncio.StreamWriter(outgoing, protocol, None, loop))
        receiving = asyncio.create_task(browser.receive())
        try:
            await browser.open_page()
            yield browser
        finally:
            receiving.cancel()
            incoming.close()
            outgoing.close()
            process.kill()
            await process.wait()
