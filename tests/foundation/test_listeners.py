"""Tests of listeners that are isolated from each other."""

from structlog.testing import capture_logs

from edge.foundation.listeners import notify, notify_async


def fail(_: int) -> None:
    raise RuntimeError("no room")


async def fail_later(_: int) -> None:
    raise RuntimeError("no room")


def test_failing_listener_affects_no_other_and_is_logged() -> None:
    seen: list[int] = []
    with capture_logs() as logs:
        notify([fail, seen.append], 7)
    assert seen == [7]
    assert [(entry["event"], entry["listener"]) for entry in logs] == [("listener failed", "fail")]


async def test_failing_async_listener_affects_no_other_and_is_logged() -> None:
    seen: list[int] = []

    async def note(number: int) -> None:
        seen.append(number)

    with capture_logs() as logs:
        await notify_async([fail_later, note], 7)
    assert seen == [7]
    assert [entry["event"] for entry in logs] == ["listener failed"]


def test_listener_that_removes_itself_skips_no_other() -> None:
    seen: list[int] = []

    def once(_: int) -> None:
        listeners.remove(once)

    listeners = [once, seen.append]
    notify(listeners, 7)
    assert seen == [7]
