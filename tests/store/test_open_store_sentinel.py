"""The store behind Sentinel: found through any sentinel, with its own login and TLS, over when the primary changes."""

import asyncio
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError, SettingsError, Unavailable
from edge.store.client import Store
from edge.store.commit import Committed, operation
from edge.store.open_store import open_store
from tests.store.sentinel_line import Access, open_line, until
from tests.store.tls import write_certificate

both_programs = pytest.mark.parametrize("program", ["redis", "valkey"])


async def refusal(settings: RedisSettings) -> EdgeError:
    """Open a store and return the error."""
    with pytest.raises(EdgeError) as caught:
        async with open_store(settings, "edge"):
            pass
    return caught.value


@both_programs
async def test_store_opens_while_the_first_sentinel_is_silent(tmp_path: Path, unique: str, program: str) -> None:
    """Its machine is gone: nothing answers, not even a refusal."""
    async with open_line(tmp_path, program=program) as line:
        line.sentinels[0].signal(signal.SIGSTOP)
        began = asyncio.get_running_loop().time()
        async with open_store(line.settings(unique), "edge") as store:
            assert asyncio.get_running_loop().time() - began < 2.0
            assert await store.commit(operation("SET", f"{unique}:a", "1")) == Committed()
        line.sentinels[0].signal(signal.SIGCONT)


async def test_learnt_sentinels_are_asked_after_the_listed_one_died(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path) as line:
        settings = line.settings(unique, listed=line.sentinels[:1])
        async with open_store(settings, "edge"):
            pass
        await line.sentinels[0].kill()
        async with open_store(settings, "edge") as store:
            assert await store.execute("PING") == "PONG"


async def test_store_accepts_passwords_of_server_and_sentinels(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, access=Access(password="p@ss word", sentinel_password="watch word")) as line:
        async with open_store(line.settings(unique), "edge") as store:
            replies = await asyncio.gather(*(store.execute("PING") for _ in range(300)))
            assert len(replies) == 300
        refused = await refusal(line.settings(unique, sentinel_password="wrong"))
    assert isinstance(refused, SettingsError)
    assert "the sentinel 127.0.0.1:" in refused.message
    assert "sentinel_password" in refused.advice


async def test_sentinels_and_servers_are_reached_over_tls(tmp_path: Path, unique: str) -> None:
    access = Access(tls=write_certificate(tmp_path), password="sesame")
    async with open_line(tmp_path, access=access) as line:
        async with open_store(line.settings(unique), "edge") as store:
            assert await store.commit(operation("SET", f"{unique}:a", "1")) == Committed()
        untrusted = await refusal(line.settings(unique, ca_file=""))
    assert isinstance(untrusted, Unavailable)
    assert "certificate" in untrusted.message


async def test_a_service_that_no_sentinel_monitors_is_refused(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1, sentinels=1) as line:
        settings = line.settings(unique)
        refused = await refusal(RedisSettings(url=settings.url.replace("/line", "/other"), prefix=unique))
    assert isinstance(refused, SettingsError)
    assert "monitors no service 'other'" in refused.message


async def test_a_server_that_is_not_a_sentinel_is_refused(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1, sentinels=1) as line:
        refused = await refusal(line.settings(unique, listed=line.nodes))
    assert isinstance(refused, SettingsError)
    assert "is not a sentinel" in refused.message


@both_programs
async def test_failover_by_command_ends_the_store(tmp_path: Path, unique: str, program: str) -> None:
    """No commit goes to the old primary once one sentinel knows of the failover."""
    async with open_line(tmp_path, program=program) as line:
        async with open_store(line.settings(unique), "edge") as store:
            first = store.keys.generation_id
            await store.commit(operation("SET", f"{unique}:kept", "1"))
            blocked = asyncio.create_task(store.wait("BLPOP", f"{unique}:list", "5"))
            await until(line.knows_itself)
            await line.fail_over()
            accepted = await _commit_until_unavailable(store)
            async with asyncio.timeout(20):
                await store.over.wait()
            with pytest.raises(Unavailable, match="the primary of the store has changed"):
                await blocked
            with pytest.raises(Unavailable, match="the primary of the store has changed"):
                await store.execute("PING")
        assert accepted < 1.0
        async with open_store(line.settings(unique), "edge") as store:
            assert store.keys.generation_id != first
            assert await store.execute("GET", f"{unique}:kept") == "1"
            assert (await store.execute("ROLE"))[0] == "master"


async def _commit_until_unavailable(store: Store) -> float:
    """Return for how many seconds commits were accepted."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(20):
        while True:
            try:
                await store.commit(operation("SET", "word", "1"))
            except Unavailable:
                return loop.time() - began
            await asyncio.sleep(0.01)


async def test_second_store_adopts_the_generation_of_the_first(tmp_path: Path, unique: str) -> None:
    async with (
        open_line(tmp_path) as line,
        open_store(line.settings(unique), "first") as first,
        open_store(line.settings(unique), "second") as second,
    ):
        assert first.keys.generation_id == second.keys.generation_id != ""


async def test_commit_of_another_generation_writes_nothing(tmp_path: Path, unique: str) -> None:
    """A store that slept through a failover to and fro must not write on what it read before."""
    async with open_line(tmp_path, nodes=1) as line, open_store(line.settings(unique), "edge") as store:
        await line.nodes[0].call("HSET", store.keys.generation(), "id", "other")
        with pytest.raises(Unavailable, match="another generation"):
            await store.commit(operation("SET", f"{unique}:a", "1"))
        assert store.over.is_set()
        assert await line.nodes[0].call("GET", f"{unique}:a") is None


async def test_commit_without_a_majority_of_sentinels_is_refused(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path) as line, open_store(line.settings(unique), "edge") as store:
        for sentinel in line.sentinels[1:]:
            sentinel.signal(signal.SIGSTOP)
        assert await _commit_until_unavailable(store) < 2.5
        assert "majority" in str(store.unconfirmed)
        assert not store.over.is_set()
        for sentinel in line.sentinels[1:]:
            sentinel.signal(signal.SIGCONT)

        async def confirmed() -> bool:
            return not store.unconfirmed

        await until(confirmed)
        assert await store.commit(operation("SET", f"{unique}:a", "1")) == Committed()


async def test_new_connection_to_a_demoted_primary_ends_the_store(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1) as line, open_store(line.settings(unique), "edge") as store:
        await line.nodes[0].call("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(Unavailable, match="has become a replica"):
            await store.wait("BLPOP", f"{unique}:list", "1")
        assert store.over.is_set()


def documented_rights(user: str) -> str:
    """Return the rights of a user in the guide to hardening."""
    lines = Path("docs/how-to/hardening.md").read_text(encoding="utf-8").splitlines()
    return next(line.split(">… ")[1] for line in lines if line.startswith(f"    user {user} on"))


async def test_store_opens_with_the_rights_of_the_documentation(tmp_path: Path, unique: str) -> None:
    """Those of docs/how-to/hardening.md, at the servers and at the sentinels."""
    server, sentinel = map(documented_rights, ("microdcs-edge", "microdcs-watch"))
    async with open_line(tmp_path) as line:
        for node in line.nodes:
            rights = server.replace("microdcs-edge:*", f"{unique}:*").split()
            await node.call("ACL", "SETUSER", "microdcs-edge", "on", ">own", *rights)
        for watching in line.sentinels:
            await watching.call("ACL", "SETUSER", "microdcs-watch", "on", ">watch", *sentinel.split())
        settings = line.settings(unique, sentinel_username="microdcs-watch", sentinel_password="watch")
        settings = replace(settings, url=settings.url.replace("://", "://microdcs-edge:own@"))
        async with open_store(settings, "edge") as store:
            assert await store.commit(operation("SET", f"{unique}:a", "1")) == Committed()
            async with store.subscribe(f"{unique}:words") as messages:
                await store.execute("PUBLISH", f"{unique}:words", "heard")
                assert await anext(messages) == "heard"


async def test_store_that_is_over_leaves_no_connection_open(tmp_path: Path, unique: str) -> None:
    """A recorder of traffic continued listening to the former primary, and the connection of begun marks stayed."""
    async with open_line(tmp_path) as line:

        async def connections() -> set[str]:
            listed = str(await line.nodes[0].call("CLIENT", "LIST"))
            return {
                text.split(" ")[0]
                for text in listed.splitlines()
                if "sentinel-" not in text and "cmd=client" not in text
            }

        before = await connections()
        async with open_store(line.settings(unique), "edge") as store:
            async with store.subscribe(f"{unique}:words") as messages:
                await store.settle_start()
                assert len(await connections() - before) >= 3
                store.end("the test ends it")
                with pytest.raises(Unavailable, match="the primary of the store has changed"):
                    async with asyncio.timeout(2):
                        await anext(messages)

                async def are_gone() -> bool:
                    return not await connections() - before

                await until(are_gone, 5)
            with pytest.raises(Unavailable, match="the primary of the store has changed"):
                async with store.subscribe(f"{unique}:words"):
                    pass
            with pytest.raises(Unavailable, match="the primary of the store has changed"):
                await store.settle_start()


async def test_sentinels_behind_a_failover_do_not_open_the_old_primary(tmp_path: Path, unique: str) -> None:
    """Two that had not heard of it opened the old one for a moment: the store was over twice."""
    async with open_line(tmp_path) as line:
        settings = line.settings(unique)
        async with open_store(settings, "edge") as store:
            assert store.ha
            view = next(iter(store.ha.sentinels.views.values()))
            later = replace(view.primary, port=line.nodes[1].port, config_epoch=view.primary.config_epoch + 1)
            store.ha.fence.take(replace(view, primary=later), asyncio.get_running_loop().time())
            await store.over.wait()
        refused = await refusal(settings)
        assert "the primary before the last failover" in refused.message

        async def opens_again() -> bool:
            async with open_store(settings, "edge") as store:
                return bool(await store.execute("PING") == "PONG")

        # That failover has come to nothing, or a person has set up the sentinels again.
        await until(opens_again)
