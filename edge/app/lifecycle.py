"""Starts the gateway in order, reloads its settings, and stops it in reverse order within a deadline."""

import asyncio
import contextlib
import gc
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from edge import __version__
from edge.app.parts import GatewayMemory
from edge.app.systemd import Notify, notifier
from edge.app.wiring import open_gateway
from edge.config import Settings
from edge.foundation.backoff import Backoff
from edge.foundation.clock_sync import Clock, read_clock
from edge.foundation.errors import EdgeError, SettingsError, Unavailable, unwrap_group
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.open_store import REOPEN_S

logger = structlog.get_logger(__name__)

_STOP_WITHIN_S = 10.0


async def serve(
    settings: Settings, load: Callable[[], Settings] | None = None, settings_file: Path | None = None
) -> None:
    """Run the gateway until SIGTERM or SIGINT; a second signal ends the process at once.

    SIGHUP reads the settings again with `load`; without `load` the gateway leaves SIGHUP to the system. Commands of the
    fleet read the settings from `settings_file`. Raises SettingsError for unusable settings, Unavailable when a server
    is unavailable or the stop takes too long.
    """
    life = _Life(notifier(), load, settings_file)
    limit = asyncio.timeout(None)
    try:
        async with limit:
            with _signals(life, limit), unwrap_group():
                logger.info("starting", gateway=settings.gateway.name, version=__version__)
                _log_clock_state()
                await life.run(settings)
    except TimeoutError as error:
        if not limit.expired():
            raise
        message = Text.of("the gateway did not stop within {stop_within_s:.0f} s", stop_within_s=_STOP_WITHIN_S)
        raise Unavailable(message, "No data is lost. The next start continues from the stored state.") from error
    logger.info("stopped", gateway=settings.gateway.name)


class _Life:
    """Opens the gateway, and opens it again: with other settings when it is asked to reload, or with another primary.

    A store behind Sentinel is over when its primary changes. Then everything that was read from it is closed with it,
    and the gateway starts from what the new primary holds, as it does after a kill.
    """

    def __init__(self, notify: Notify, load: Callable[[], Settings] | None, settings_file: Path | None = None) -> None:
        self.load = load
        self._settings_file = settings_file
        self.stopping = asyncio.Event()
        self.woken = asyncio.Event()
        """Set to stop, to reload, or when the store is over."""
        self._notify = notify
        self._former: Settings | None = None
        self._memory = GatewayMemory()
        self._reopening: Backoff | None = None
        """Set from the end of a store until its successor serves."""

    async def run(self, settings: Settings) -> None:
        """Serve until stopped; when changed settings cannot be opened, serve with the former ones."""
        following: Settings | None = settings
        while current := following:
            try:
                following, self._former = await self._serve(current), current
            except (SettingsError, Unavailable) as error:
                following = await self._after_failure(current, error)

    async def _after_failure(self, settings: Settings, error: EdgeError) -> Settings | None:
        """Return the settings to serve with next, None to stop. Raises the error when no settings are left."""
        if self._reopening is not None:
            return await self._pause(self._reopening, settings, error)
        if self._former is None:
            raise error
        logger.error("settings not applied", reason=error.message, advice=error.advice)
        former, self._former = self._former, None
        return former

    async def _pause(self, backoff: Backoff, settings: Settings, error: EdgeError) -> Settings | None:
        """Wait before the store is opened again; return the settings to open it with, None to stop."""
        logger.warning("store not opened again, retrying", reason=error.message, advice=error.advice)
        self._notify(f"WATCHDOG=1\nSTATUS=store unavailable, no job continues: {error.message}")
        await backoff.pause(self.woken)
        if self.stopping.is_set():
            return None
        return await self._following(settings)

    async def _following(self, settings: Settings) -> Settings:
        """Return the settings as they are now if a reload was asked for, else the same."""
        if not self.woken.is_set():
            return settings
        self.woken.clear()
        return await self._reload(settings)

    async def _serve(self, settings: Settings) -> Settings | None:
        """Serve with these settings; return those to serve with next, None to stop."""
        async with (
            open_gateway(settings, self._notify, self._settings_file, self._memory) as gateway,
            background_task(self._wake_at_end(gateway.store), "end of the store"),
        ):
            self._former = self._reopening = None
            # Objects created so far live until the end: exclude them from garbage collection.
            gc.freeze()
            gc.enable()
            self._notify(f"READY=1\nSTATUS={gateway.serving}")
            logger.info("ready", gateway=settings.gateway.name, serving=gateway.serving)
            following = settings
            while following == settings and not self.stopping.is_set() and not gateway.store.over.is_set():
                await self.woken.wait()
                if gateway.store.over.is_set():
                    self._reopening = Backoff(*REOPEN_S, stable=REOPEN_S[1])
                self.woken.clear()
                following = settings if self.stopping.is_set() or self._reopening else await self._reload(settings)
            if gateway.store.over.is_set() and self._reopening is None:
                # Another failover while the gateway was being opened, or while it read its settings.
                self._reopening = Backoff(*REOPEN_S, stable=REOPEN_S[1])
            self._memory.jobs_clock = gateway.clock
            self._notify(self._closing())
        gc.unfreeze()
        if self.stopping.is_set():
            return None
        # The closed gateway is full of reference cycles. Without this the next one would freeze what is left of it.
        gc.collect()
        return following

    async def _wake_at_end(self, store: Store) -> None:
        await store.over.wait()
        self.woken.set()

    def _closing(self) -> str:
        """Return the message for systemd while the gateway closes."""
        if self.stopping.is_set():
            return "STOPPING=1\nSTATUS=stopping"
        return _reloading("the primary of the store has changed" if self._reopening else "reloading")

    async def _reload(self, settings: Settings) -> Settings:
        """Return the settings as they are in the files now; the same when they cannot be used."""
        try:
            following = await asyncio.to_thread(self.load) if self.load else settings
            if following != settings and "embedded:" in {settings.redis.url, following.redis.url}:
                advice = "Restart the gateway, or keep the store in a directory: embedded:/DIR"
                raise Unavailable("an embedded store without a directory does not outlast a reload", advice)
        except EdgeError as error:
            logger.error("settings not applied", reason=error.message, advice=error.advice)
            return settings
        logger.info("settings unchanged" if following == settings else "settings changed")
        return following


def _reloading(status: str) -> str:
    """Return the message that reports the instant of a reload to systemd (sd_notify(3))."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}\nSTATUS={status}"


def _log_clock_state() -> None:
    """Log the state of the clock; the start never waits for it, because a gateway without network must start too."""
    match read_clock():
        case Clock.SYNCHRONISED:
            return
        case Clock.UNSYNCHRONISED:
            advice = "Until then each record has clock=unsynchronised. Check it with: timedatectl timesync-status"
            logger.warning("clock not synchronised", effect="time stamps may be wrong", advice=advice)
        case Clock.UNKNOWN:
            logger.info("clock state unknown")


@contextlib.contextmanager
def _signals(life: _Life, limit: asyncio.Timeout) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if life.load else ()))
    before = {number: signal.getsignal(number) for number in numbers}

    def begin_to_stop(number: signal.Signals) -> None:
        for value in before:
            loop.remove_signal_handler(value)
            signal.signal(value, signal.SIG_DFL)
        logger.info("stopping", signal=number.name)
        life.stopping.set()
        life.woken.set()
        # The deadline runs from the signal on, so that a hanging start cannot delay the stop.
        limit.reschedule(loop.time() + _STOP_WITHIN_S)

    for number in before:
        if number is signal.SIGHUP:
            loop.add_signal_handler(number, life.woken.set)
        else:
            loop.add_signal_handler(number, begin_to_stop, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
