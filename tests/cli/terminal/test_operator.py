"""The operator of an audit record is the user of the operating system, not of the environment."""

import os
import pwd

import pytest

from edge.cli.terminal.operator import operator_name


def test_operator_is_not_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert operator_name() == pwd.getpwuid(os.getuid()).pw_name
