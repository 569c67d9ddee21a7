"""A support bundle contains the state of the gateway and no secret."""

import json
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from edge.config import RedisSettings
from edge.features.admin.archive import read_members
from edge.features.admin.support import _pattern, gather, programs, read_key_statistics, read_server_info, run_program
from edge.store.client import Store
from tests.features.admin.gateways import CANARY, furnish

NOW = 1_790_000_000_000


@pytest.fixture
def settings(redis: RedisSettings, tmp_path: Path) -> Path:
    """A gateway whose log says what it should not."""
    log = tmp_path / "log"
    log.write_text(f"login failed: {CANARY}\nmqtt://u:{quote(CANARY, safe='')}@host\nall is well\n")
    return furnish(tmp_path / "etc", redis)


async def bundle(settings: Path, *, with_jobs: bool = False) -> dict[str, str]:
    file = settings.parent.parent / "s.tar.gz"
    log = settings.parent.parent / "log"
    asked = [("log.txt", ("cat", str(log))), ("x.txt", ("no-such-thing",))]
    await gather(file, settings, {}, "-1d", NOW, lambda _: None, with_jobs=with_jobs, asked=lambda _: asked)
    assert file.stat().st_mode & 0o777 == 0o600
    return {name: content.decode() for name, content in read_members(file).items()}


async def test_bundle_contains_state_and_no_secret(store: Store, settings: Path) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "order", "payload-of-a-job")
    contents = await bundle(settings)
    everything = "\n".join(contents.values())
    for secret in (CANARY, quote(CANARY, safe=""), "PRIVATE KEY", "$argon2id", "c" * 20, "payload-of-a-job"):
        assert secret not in everything
    assert contents["log.txt"] == "login failed: ***\nmqtt://***@host\nall is well\n"
    assert contents["x.txt"] == "no-such-thing is not installed\n"
    assert '"manufacturer": "Example"' in contents["settings.json"]
    assert '"joborder:{id}"' in contents["store.json"]
    assert '"OPC UA users"' in contents["doctor.json"]


async def test_bundle_contains_jobs_only_if_requested(store: Store, settings: Path) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "order", f"payload {CANARY}")
    contents = await bundle(settings, with_jobs=True)
    assert "payload ***" in contents["store.jsonl"]


async def test_unavailable_part_of_the_bundle_contains_the_reason(settings: Path, tmp_path: Path) -> None:
    Path.write_text(settings, f'[redis]\nurl = "unix://{tmp_path}/none.sock"\n[mqtt]\nurl = ""\n')
    assert "Redis does not answer" in (await bundle(settings))["store.json"]
    Path.write_text(settings, f'[redis]\nulr = 1\npassword = "{CANARY}"\n')
    contents = await bundle(settings)
    assert "there is no such key" in contents["settings.json"]
    assert "store.json" not in contents


def test_bundle_contains_the_logs_of_gateway_and_store() -> None:
    commands = dict(programs("-2d"))
    assert commands["log-microdcs-edge.txt"][-1] == "--unit=microdcs-edge"
    assert "--since=-2d" in commands["log-redis-server-microdcs.txt"]


async def test_blocked_program_is_ended() -> None:
    assert "did not end" in await run_program(("sleep", "60"), time_limit_s=0.05)


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("joborder:AXLE:1", "joborder:{id}"),
        ("joborder:list:station-1", "joborder:list:{scope}"),
        ("joborder:changes:_global", "joborder:changes:_global"),
        ("workmaster:list:s", "workmaster:list:{scope}"),
        ("equipment:list:s", "{kind}:list:{scope}"),
        ("sfc:waits:s:photo.v1", "sfc:waits:{scope}:{type_id}"),
        ("somebody's own", "?"),
    ],
)
def test_a_key_counts_for_its_pattern(key: str, pattern: str) -> None:
    assert _pattern(key) == pattern


async def test_keys_are_counted_without_their_names(store: Store) -> None:
    for job in ("CANARY-1", "CANARY-2"):
        await store.execute("HSET", store.keys.joborder(job), "rev", "1", "order", "canary")
    await store.execute("XADD", store.keys.sfc_work("s"), "*", "job_id", "CANARY-1")
    kinds = await read_key_statistics(store)
    assert (kinds["joborder:{id}"].keys, kinds["joborder:{id}"].entries) == (2, 4)
    assert kinds["sfc:work:{scope}"].entries == 1
    assert kinds["joborder:{id}"].bytes > 0
    assert "canary" not in msgspec.json.encode(kinds).decode().lower()


async def test_server_info_is_read_without_file_paths(store: Store) -> None:
    reported = await read_server_info(store)
    assert {"redis_version", "used_memory", "maxmemory_policy", "aof_enabled"} <= reported.keys()
    assert "executable" not in json.dumps(dict(reported), default=str)
