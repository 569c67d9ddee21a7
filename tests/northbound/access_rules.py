"""Configuration lines for a mosquitto whose access rules forbid topics."""

import json
from pathlib import Path

import pytest

_PLUGIN = "mosquitto_dynamic_security.so"


def allowing(directory: Path, *rules: str) -> str:
    """Return lines that allow these topics only, as `write p/+/events`; forbidden reads are granted and stay silent."""
    listed = directory / "acl"
    listed.write_text("".join(f"topic {rule}\n" for rule in rules))
    listed.chmod(0o600)
    return f"acl_file {listed}"


def refusing_subscriptions(directory: Path, *topics: str) -> tuple[str, str]:
    """Return lines that answer subscriptions to these topics with 0x87, as other brokers do; all else is allowed."""
    found = next(Path("/usr/lib").rglob(_PLUGIN), None)
    if found is None:
        pytest.skip(f"this mosquitto came without {_PLUGIN}")
    access = ("publishClientSend", "publishClientReceive", "subscribe", "unsubscribe")
    rules = [{"acltype": "subscribePattern", "topic": topic, "priority": 0, "allow": False} for topic in topics]
    settings = {
        "defaultACLAccess": dict.fromkeys(access, True),
        "anonymousGroup": "everybody",
        "groups": [{"groupname": "everybody", "roles": [{"rolename": "guest"}], "clients": []}],
        "roles": [{"rolename": "guest", "acls": rules}],
        "clients": [],
    }
    path = directory / "dynamic-security.json"
    path.write_text(json.dumps(settings))
    return f"plugin {found}", f"plugin_opt_config_file {path}"
