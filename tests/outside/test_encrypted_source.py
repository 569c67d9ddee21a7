"""Samples over an encrypted session with an OPC UA server of another vendor (node-opcua), as a page describes it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.servers import Gateway, Store, ended, wait_for

# node-opcua reads its node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

_PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def block(page: str, language: str) -> str:
    """Return the first block of a language on a page."""
    match = re.search(rf"^```{language}\n(.*?)^```$", (_PAGES / page).read_text(), re.MULTILINE | re.DOTALL)
    assert match
    return match[1]


def make_certificate(folder: Path) -> None:
    """Run the command of the page about certificates, for a folder."""
    page = (_PAGES / "opcua-equipment.md").read_text()
    match = re.search(r"^    (openssl req .*?)\n    chgrp", page, re.MULTILINE | re.DOTALL)
    assert match
    command = match[1].replace("/etc/microdcs-edge", str(folder))
    subprocess.run(["bash", "-euc", command], check=True, capture_output=True, timeout=60)


def test_source_reads_an_encrypted_server_after_mutual_trust(tmp_path: Path) -> None:
    store, oven = Store(tmp_path / "store"), OpcuaDevice(tmp_path / "oven", "oven", 1)
    make_certificate(tmp_path)
    path = tmp_path / "oven" / "pki" / "trusted" / "certs"
    path.mkdir(parents=True)
    shutil.copy(tmp_path / "opcua-client.pem", path)
    (tmp_path / "opcua-devices").mkdir()
    (tmp_path / "rules.json").write_text(block("samples-from-opcua.md", "json"))
    settings = block("samples-from-opcua.md", "toml").replace("/etc/microdcs-edge", str(tmp_path))
    gateway = Gateway(
        tmp_path / "gateway",
        "edge",
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = ""\n[opcua]\nendpoint = ""\n'
        + settings.replace("opc.tcp://192.168.1.30:4840", oven.url),
    )
    with ended(store, oven, gateway):
        store.start()
        oven.start()
        gateway.start()
        wait_for(lambda: "is not trusted" in gateway.log.read_text(), "the unknown server is refused")
        shutil.copy(tmp_path / "oven" / "pki" / "own" / "certs" / "certificate.pem", tmp_path / "opcua-devices")
        wait_for(lambda: "source connected" in gateway.log.read_text(), "the trusted server is read")
        oven.heat(85)
        wait_for(lambda: alarms(store) == {("hot", "oven.temp")}, "the alarm is raised")
        assert oven.count("session") == 1


def alarms(store: Store) -> set[tuple[str, str]]:
    """Return the rules and subjects of the alarms that are kept."""
    lines = [json.loads(line) for line in store.cli("HVALS", "microdcs-edge:alarms").splitlines() if "{" in line]
    return {(line["rule"], line["subject"]) for line in lines if line.get("active") == "active"}
