"""Records of upgrades are written once, and their lock shows whether an upgrade runs."""

from pathlib import Path

from edge.features.fleet.signature import FleetState
from edge.features.fleet.upgrade_record import (
    UpgradeRecord,
    claim,
    is_running,
    load,
    only_upgrade,
    remove_expired,
    save,
)

BEGUN = UpgradeRecord(id="0123456789abcdef", state=FleetState.EXECUTING, exp=1000)


def test_command_is_claimed_once(tmp_path: Path) -> None:
    assert claim(tmp_path, BEGUN)
    assert not claim(tmp_path, BEGUN)
    assert load(tmp_path, BEGUN.id) == BEGUN


def test_record_emptied_by_a_power_cut_blocks_its_command(tmp_path: Path) -> None:
    assert claim(tmp_path, BEGUN)
    (tmp_path / f"{BEGUN.id}.json").write_bytes(b"")
    assert load(tmp_path, BEGUN.id) is None
    assert not claim(tmp_path, BEGUN)
    remove_expired(tmp_path, 2000)
    assert not claim(tmp_path, BEGUN)


def test_expired_records_are_removed(tmp_path: Path) -> None:
    save(tmp_path, BEGUN)
    remove_expired(tmp_path, 1000)
    assert load(tmp_path, BEGUN.id)
    remove_expired(tmp_path, 1001)
    assert load(tmp_path, BEGUN.id) is None


def test_second_upgrade_does_not_wait_for_the_lock(tmp_path: Path) -> None:
    assert not is_running(tmp_path)
    with only_upgrade(tmp_path) as first, only_upgrade(tmp_path) as second:
        assert (first, second) == (True, False)
        assert is_running(tmp_path)
    assert not is_running(tmp_path)
