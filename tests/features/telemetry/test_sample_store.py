"""Samples are stored in memory if configured, or by default if the packaged store is on an SD card."""

import asyncio
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.features.telemetry.sample_store import follow_samples, is_volatile
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.task_group import background_task
from edge.ports.sample_lines import Occurrence, Sample
from edge.store.client import Store
from tests.features.telemetry.plant import append
from tests.foundation.computers import computer

PACKAGED = RedisSettings(url="unix:///run/redis-microdcs/redis.sock")


@pytest.mark.parametrize("device", ["/dev/mmcblk0p2", "/dev/nvme0n1p2"])
def test_default_depends_on_the_medium_of_the_packaged_store(tmp_path: Path, device: str) -> None:
    machine = computer(tmp_path, {"/proc/mounts": f"{device} / ext4 rw 0 0", "/sys/block/mmcblk0/device/type": "SD"})
    assert is_volatile(TelemetrySettings(), PACKAGED, machine) is ("mmcblk" in device)
    assert is_volatile(TelemetrySettings(), RedisSettings(), machine) is False


def test_setting_overrides_the_medium(tmp_path: Path) -> None:
    machine = computer(tmp_path, {"/proc/mounts": "/dev/mmcblk0p2 / ext4 rw 0 0"})
    assert is_volatile(TelemetrySettings(keep="durable"), PACKAGED, machine) is False
    assert is_volatile(TelemetrySettings(keep="volatile"), RedisSettings(), machine) is True
    assert is_volatile(TelemetrySettings(mode="off", keep="volatile"), PACKAGED, machine) is False


async def test_new_samples_are_shown_and_other_entries_are_skipped(store: Store) -> None:
    await append(store, Sample(1, "old", 1))
    samples: list[Sample] = []
    async with background_task(follow_samples([store], samples.append), "feed"), asyncio.timeout(60):
        while not samples:
            await store.execute("XADD", store.keys.telemetry(), "*", "garbage", "1")
            await append(store, Occurrence(1, "x", None, None), Sample(2, "new", 2))
            await asyncio.sleep(0.01)
    assert set(map(repr, samples)) == {repr(Sample(2, "new", 2))}
