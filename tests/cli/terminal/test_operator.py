"""The operator of an audit record is the user of the operating system, not of the environment."""

import json
import os
import pwd

import pytest

from edge.cli.terminal.operator import operator_name, recorded
from edge.cli.terminal.store_access import StoreAccess
from edge.config import Settings
from edge.foundation.errors import Refused, Unavailable
from edge.store import audit
from edge.store.client import Store


def test_operator_is_not_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert operator_name() == pwd.getpwuid(os.getuid()).pw_name


async def test_refused_command_is_recorded_with_the_reason(store: Store) -> None:
    at = StoreAccess(Settings(), store)
    async with recorded(at, "jobs resend", "J1"):
        pass
    with pytest.raises(Refused):
        async with recorded(at, "equipment release", "wrench", "checked by hand"):
            raise Refused("nothing_open", "no stop is open")
    with pytest.raises(Unavailable):
        async with recorded(at, "jobs resend", "J2"):
            raise Unavailable("the effect is unknown")
    records = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 9)]
    assert [(record["action"], record["subject"], record["status"]) for record in records] == [
        ("jobs resend", "J1", "Good"),
        ("equipment release", "wrench", "no stop is open"),
    ]
    assert {record["user"] for record in records} == {operator_name()}
    assert records[1]["comment"] == "checked by hand"
