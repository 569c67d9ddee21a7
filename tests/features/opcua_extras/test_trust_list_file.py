"""A trust list as a file: handles belong to a session, and an open file blocks the others for a limited time only."""

from pathlib import Path

import pytest
from asyncua import ua
from asyncua.common.utils import ServiceError
from cryptography.hazmat.primitives import hashes

from edge.features.opcua_extras.trust_list_file import ACTIVITY_TIMEOUT_S, TrustListFile
from edge.uaserver.application_trust import TrustLists, replace_lists
from tests.uaserver import pki

READ, WRITE = 1, 6
ALICE, BOB = object(), object()
CLIENT = pki.self_signed("client").public_bytes(pki.DER)


class Times:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def file(tmp_path: Path, times: Times) -> TrustListFile:
    replace_lists(tmp_path, TrustLists((CLIENT,)))
    return TrustListFile(tmp_path, lambda: times.now)


def is_open(_session: object) -> bool:
    return False


async def status(awaitable: object) -> str:
    with pytest.raises(ServiceError) as caught:
        await awaitable  # type: ignore[misc]
    return str(ua.StatusCode(caught.value.code).name)


async def test_a_handle_belongs_to_its_session(file: TrustListFile) -> None:
    handle = await file.open(ALICE, READ)
    for call in (file.close, file.position):
        with pytest.raises(ServiceError):
            call(BOB, handle)
    assert len(file.read(ALICE, handle, 1 << 20)) > len(CLIENT)


async def test_a_writer_blocks_others_until_its_session_ends(file: TrustListFile) -> None:
    await file.open(ALICE, WRITE)
    assert await status(file.open(BOB, WRITE)) == "BadNotWritable"
    assert await status(file.open(BOB, READ)) == "BadNotReadable"
    file.forget(lambda session: session is ALICE)
    assert file.open_count == 0
    await file.open(BOB, WRITE)


async def test_idle_writer_is_closed_after_a_minute(file: TrustListFile, times: Times) -> None:
    handle = await file.open(ALICE, WRITE)
    times.now = ACTIVITY_TIMEOUT_S
    file.write(ALICE, handle, b"x")
    times.now += ACTIVITY_TIMEOUT_S
    file.forget(is_open)
    assert file.open_count == 1
    times.now += 1
    file.forget(is_open)
    assert file.open_count == 0
    assert await status(file.close_and_update(ALICE, handle)) == "BadInvalidArgument"


async def test_number_of_readers_is_limited(file: TrustListFile) -> None:
    for _ in range(10):
        await file.open(ALICE, READ)
    assert await status(file.open(BOB, READ)) == "BadTooManyOperations"


async def test_a_list_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trusted").write_text("a file where a directory should be")
    file = TrustListFile(tmp_path / "trusted")
    assert await status(file.add(CLIENT, is_trusted=True)) == "BadNotWritable"


async def test_removed_authority_loses_its_revocation_lists(tmp_path: Path) -> None:
    root, other = pki.root("plant"), pki.root("other", 2)
    lists = tuple(authority.revoke().public_bytes(pki.DER) for authority in (root, other))
    both = tuple(authority.certificate.public_bytes(pki.DER) for authority in (root, other))
    replace_lists(tmp_path, TrustLists(both, lists))
    file = TrustListFile(tmp_path)
    await file.remove(root.certificate.fingerprint(hashes.SHA1()).hex(), is_trusted=True)  # noqa: S303 - a name
    handle = await file.open(ALICE, READ)
    content = file.read(ALICE, handle, 1 << 20)
    assert [data in content for data in (*both, *lists)] == [False, True, False, True]
