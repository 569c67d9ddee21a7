"""The commands of the how-to pages work at a plant with one gateway, one tool and ended jobs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.page_commands import page_commands
from tests.outside.servers import EDGE, ROOT, wait_for

pytestmark = pytest.mark.slow

PAGES = (
    *("backup", "draw-a-recipe", "fleet", "hardening", "install", "locks", "maintenance", "monitoring"),
    *("opcua-clients", "operations", "run-workers", "samples-of-the-gateway", "station-files", "store-repair"),
    *("traces", "troubleshooting", "upgrade", "users", "watch-a-job"),
)

NOT_HERE = {
    "draw --job": "the page names another job",
    "fleet keys": "asks for a password: test_fleet.py",
    "fleet results": "needs a command: test_fleet.py",
    "fleet send": "needs a key: test_fleet.py",
    "fleet show": "the page names another gateway",
    "init": "asks for everything: tests/features/admin/cli/test_init.py",
    "jobs abort": "ends the job: tests/outside/test_commands.py",
    "jobs list --settings": "restores into a second store: tests/features/admin/cli/test_backup_restore.py",
    "jobs replay": "needs a second recipe: tests/outside/test_decisions.py",
    "locks delete": "refused while the holder lives: test_locks.py",
    "locks hold": "holds for minutes: test_locks.py",
    "opcua renew": "replaces a certificate: test_certificate_names.py",
    "opcua trust": "needs a rejected certificate: test_trust.py",
    "operations watch": "the page names another operation: test_operations.py",
    "record": "records until Ctrl-C: tests/features/admin/cli/test_record.py",
    "restore": "needs a stopped gateway: test_pages.py",
    "rules check": "needs the file of the page: tests/cli/rules",
    "sessions end": "needs a session: test_users.py",
    "station apply": "needs station files: test_station_files.py",
    "station set workmaster": "is started by hand below",
    "store repair": "needs a damaged file: tests/cli/test_store.py",
    "store switch-over": "needs a replica and Sentinel: tests/sentinel",
    "users add": "asks for a password: test_users.py",
    "users badge": "needs the user: tests/cli/test_users.py",
    "users passwd": "asks for a password: test_users.py",
    "users pin": "needs the user: tests/cli/test_users.py",
    "users remove": "needs the user: test_users.py",
    "users role": "needs the user: test_users.py",
    "users token": "needs the user: test_users.py",
    "users totp": "asks for a code: test_users.py",
    "worker --settings": "runs without end: test_workers.py",
}
"""How a command of a page begins that this test does not execute -> the reason."""

ENDS_WITH = {"doctor": {0, 1}}
"""Command -> its exit statuses; 0 for others. `doctor` warns: the plant has no TLS and no users."""


def commands_of(page: str) -> list[tuple[str, ...]]:
    """Return the commands of a page that are executed here, without the path of the settings."""
    written = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    whole = [command.words for command in page_commands(written) if command.is_whole]
    return [words for words in whole if not any(f"{' '.join(words)} ".startswith(f"{text} ") for text in NOT_HERE)]


def test_commands_of_the_pages_work_as_written(plant: Plant, tmp_path: Path) -> None:
    for job in ("AXLE-0001", "AXLE-0002"):
        assert plant.mes.start_job(job).status == 1
        plant.mes.wait_for_state(job, "Ended")
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(ROOT / "edge" / "features" / "simulator" / "recipes" / "rear-axle.json", folder)
    plant.gateway.cli("station", "set", "workmaster", str(folder / "rear-axle.json"), "--id", "rear-axle")
    plant.gateway.cli("station", "export", str(folder / "station.d"))
    wait_for(lambda: "wrench" in plant.gateway.cli("equipment", "list"), "the tool is reported", 60)
    environment = os.environ | {"EDGE_USERS__FILE": str(tmp_path / "users")}
    executed, failed = 0, []
    for page in PAGES:
        for words in commands_of(page):
            settings = str(plant.gateway.settings)
            call = [settings if word == "/etc/microdcs-edge/edge.toml" else word for word in words]
            if words[0] not in {"check", "draw"}:
                call += ["--settings", settings]
            if words[:2] == ("station", "export"):
                shutil.rmtree(folder / words[2], ignore_errors=True)
            ended = subprocess.run(
                [EDGE, *call], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
            )
            executed += 1
            if ended.returncode not in ENDS_WITH.get(words[0], {0}):
                failed.append((page, " ".join(words), ended.returncode, ended.stderr or ended.stdout))
    assert failed == []
    assert executed > 40
