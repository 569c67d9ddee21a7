"""Opens an interface of the gateway, and retries while its address is unavailable: jobs continue without it."""

import asyncio
from collections.abc import Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import structlog

from edge.foundation.backoff import Backoff
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.store.background import Defects

logger = structlog.get_logger(__name__)

RETRY_S = (1.0, 30.0)
"""The shortest and the longest delay between two attempts."""

Opener = Callable[[], AbstractAsyncContextManager[str]]
"""Serves the interface for the length of a block, with its address; raises Unavailable when it cannot listen."""


async def open_interface(
    stack: AsyncExitStack,
    name: str,
    opener: Opener,
    problems: MutableMapping[str, Text],
    defects: Defects,
    retry_s: tuple[float, float] = RETRY_S,
) -> str:
    """Open an interface until `stack` closes and return its address; empty while it cannot listen.

    `problems` holds the reason by the name of the interface for as long, and the interface is opened in the background.
    A defect of its code is recorded in `defects`. Raises SettingsError.

        address = await open_interface(stack, "metrics page", serve, health.interface_problems, store.defects)
    """
    try:
        return await stack.enter_async_context(opener())
    except SettingsError:
        raise
    except Unavailable as error:
        problems[name] = error.text
        logger.warning("interface unavailable, retrying", interface=name, reason=error.message, advice=error.advice)
    except Exception as error:  # noqa: BLE001 - a defect in one interface must not end the jobs
        problems[name] = Text.of("a defect of this software: {name}", name=type(error).__name__)
        defects.record(name, error)
    await stack.enter_async_context(background_task(_retry(name, opener, problems, defects, retry_s), name))
    return ""


async def _retry(
    name: str,
    opener: Opener,
    problems: MutableMapping[str, Text],
    defects: Defects,
    retry_s: tuple[float, float],
) -> None:
    shortest, longest = retry_s
    backoff = Backoff(shortest, longest, stable=longest)
    while True:
        await backoff.pause()
        try:
            async with opener() as address:
                problems.pop(name, None)
                defects.end(name)
                logger.info("interface available", interface=name, address=address)
                await asyncio.Event().wait()
        except Unavailable as error:
            problems[name] = error.text
        except Exception as error:  # noqa: BLE001 - as above
            problems[name] = Text.of("a defect of this software: {name}", name=type(error).__name__)
            defects.record(name, error)
