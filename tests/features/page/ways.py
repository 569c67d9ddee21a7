"""The ways in which people work with a page: with the mouse, with a finger on a panel, with the keyboard alone."""

from pathlib import Path
from typing import Final

from tests.features.page.chromium import Chromium

WAYS: Final = ("mouse", "touch", "keyboard")


async def act(screen: Chromium, way: str, selector: str) -> None:
    """Press a button, or follow a link."""
    match way:
        case "mouse":
            await screen.click(selector)
        case "touch":
            await screen.tap(selector)
        case _:
            await reach(screen, selector)
            await screen.press("Enter")


async def reach(screen: Chromium, selector: str) -> None:
    """Press Tab until an element has the focus."""
    await screen.until(f"document.querySelector({selector!r})")
    for _ in range(120):
        if await screen.run(f"document.activeElement?.matches({selector!r})"):
            return
        await screen.press("Tab")
    raise AssertionError(selector)


async def enter(screen: Chromium, way: str, selector: str, text: str) -> None:
    """Enter a text into a field: with the keys of the screen at a touch, else with the keyboard."""
    if way == "keyboard":
        await reach(screen, selector)
    elif way == "mouse":
        await screen.click(selector)
    if way != "touch":
        await screen.type(text)
        return
    if not await screen.run(f"document.querySelector('.keypad') && document.activeElement.matches({selector!r})"):
        await screen.tap(selector)
    await screen.until("document.querySelector('.keypad')")
    has_signs = False
    for sign in text:
        if sign.isdecimal() != has_signs and sign not in "-.":
            await screen.tap(".keypad [data-key=signs]")
            has_signs = not has_signs
        if sign.isupper():
            await screen.tap(".keypad [data-key=shift]")
        await screen.tap(f".keypad [data-key='{'space' if sign == ' ' else sign}']")
    await screen.tap(".keypad [data-key=done]")


async def go_to(screen: Chromium, way: str, address: str) -> None:
    """Follow a link of the navigation; on a panel it may be behind *More*."""
    link = f"header nav a[href='{address}']"
    if way == "touch" and not await screen.run(f"Boolean(document.querySelector({link!r})?.offsetParent)"):
        await screen.tap(".more-pages")
    await act(screen, way, link)
    await screen.until(f"location.pathname === {address!r} && document.readyState === 'complete'")


async def download(screen: Chromium, way: str, selector: str, folder: Path) -> str:
    """Follow a link to a file, and return the text of the file once it is whole."""
    before = files_in(folder)
    await screen.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    await act(screen, way, selector)
    while not (whole := files_in(folder) - before):
        await screen.run("document.readyState")
    return read(whole.pop())


def files_in(folder: Path) -> set[Path]:
    """Return the files of a folder that the browser has received to their ends."""
    return {path for path in folder.glob("*") if path.suffix != ".crdownload" and path.stat().st_size}


def read(file: Path) -> str:
    """Return the text of a file."""
    return file.read_text(encoding="utf-8")
