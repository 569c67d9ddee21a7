"""A trust list is replaced as a whole, also when the power fails in the middle, and read back as it was written."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from edge.uaserver.application_trust import (
    ALL_LISTS,
    InvalidTrustList,
    TrustList,
    TrustLists,
    decode_lists,
    encode_lists,
    finish_update,
    read_lists,
    replace_lists,
)
from tests.uaserver import pki

ROOT = pki.root("plant")
CLIENTS = [ROOT.issue(f"client {number}") for number in range(3)]
DER = [certificate.public_bytes(pki.DER) for certificate in CLIENTS]
ROOT_DER = ROOT.certificate.public_bytes(pki.DER)
CRL = ROOT.revoke(CLIENTS[2]).public_bytes(pki.DER)
OLD = TrustLists((DER[0],), (), (ROOT_DER,), (CRL,))
NEW = TrustLists((DER[1], ROOT_DER), (CRL,))


class PowerCut(Exception):
    """The power fails before a file is written or removed."""


def as_sets(lists: TrustLists) -> list[set[bytes]]:
    return [set(row) for row in lists.lists]


def test_trust_lists_are_unchanged_after_write_and_read(tmp_path: Path) -> None:
    for lists in (OLD, NEW, TrustLists(), OLD):
        replace_lists(tmp_path, lists)
        assert as_sets(read_lists(tmp_path)) == as_sets(lists)
    assert TrustList(tmp_path).fault(CLIENTS[0]) == ""


def test_replaced_lists_keep_other_files_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("who is who")
    (tmp_path / "notes.pem").write_text("no certificate")
    (tmp_path / "by-hand.pem").write_bytes(CLIENTS[0].public_bytes(Encoding.PEM))
    assert read_lists(tmp_path).trusted == (DER[0],)
    replace_lists(tmp_path, NEW)
    assert {"README", "notes.pem"} < {file.name for file in tmp_path.iterdir()}
    assert as_sets(read_lists(tmp_path)) == as_sets(NEW)


@pytest.mark.parametrize("steps", range(9))
def test_a_power_cut_leaves_the_old_or_the_new_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    replace_lists(tmp_path, OLD)
    left = steps

    def step() -> None:
        nonlocal left
        if left == 0:
            raise PowerCut
        left -= 1

    rename, unlink = Path.replace, Path.unlink

    def replace_or_fail(path: Path, target: Path) -> Path:
        step()
        return rename(path, target)

    def unlink_or_fail(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - of Path
        if not path.name.endswith(".partial"):
            step()
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace_or_fail)
        patched.setattr(Path, "unlink", unlink_or_fail)
        is_cut = False
        try:
            replace_lists(tmp_path, NEW)
        except PowerCut:
            is_cut = True
    finish_update(tmp_path)
    assert as_sets(read_lists(tmp_path)) == as_sets(OLD if steps == 0 else NEW)
    assert is_cut or steps >= 7
    assert not (tmp_path / ".update").exists()


def test_a_damaged_journal_is_discarded(tmp_path: Path) -> None:
    replace_lists(tmp_path, OLD)
    (tmp_path / ".update").write_bytes(b"garbage")
    finish_update(tmp_path)
    assert as_sets(read_lists(tmp_path)) == as_sets(OLD)


def test_only_masked_lists_are_replaced() -> None:
    for masks in range(ALL_LISTS + 1):
        trust_lists = OLD.updated(masks, NEW)
        for bit, (old, new, now) in enumerate(zip(OLD.lists, NEW.lists, trust_lists.lists, strict=True)):
            assert now == (new if masks & 1 << bit else old)
        assert decode_lists(encode_lists(masks, OLD.masked(masks))) == (masks, OLD.masked(masks))


WHOLE = encode_lists(ALL_LISTS, OLD)


@given(st.integers(0, len(WHOLE)), st.binary(max_size=20))
def test_damaged_bytes_are_an_invalid_trust_list(size: int, garbage: bytes) -> None:
    try:
        masks, lists = decode_lists(WHOLE[:size] + garbage)
    except InvalidTrustList:
        return
    # Any negative length is a null array (OPC 10000-6, 5.2.5), which is written in one form.
    assert decode_lists(encode_lists(masks, lists)) == (masks, lists)
