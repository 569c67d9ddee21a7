"""A changed private name of asyncua fails here, with the reason for its use."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.private_names import PRIVATE_NAMES, PrivateName

ROOT = Path(__file__).parents[2]


def owner_of(name: PrivateName) -> Any:
    module, _, last = name.owner.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except AttributeError:
        return importlib.import_module(name.owner)


@pytest.mark.parametrize("name", PRIVATE_NAMES, ids=lambda value: f"{value.owner.rpartition('.')[2]}.{value.name}")
def test_private_name_of_asyncua_is_unchanged(name: PrivateName) -> None:
    owner = owner_of(name)
    if name.fingerprint == "attribute":
        assert re.search(rf"self\.{name.name}\b.*=", inspect.getsource(owner)), name.reason
        return
    function = getattr(owner, name.name)
    # Only functions of asyncua are compared, as this process may have patched the decoder limits.
    if function.__module__.startswith("asyncua"):
        assert str(inspect.signature(function)) == name.fingerprint, name.reason


def test_every_private_access_is_in_the_list() -> None:
    listed = {name.name for name in PRIVATE_NAMES}
    used = set()
    for path in [*ROOT.glob("edge/opcua/*.py"), *ROOT.glob("edge/uaserver/*.py"), *ROOT.glob("edge/links/opcua*.py")]:
        for line in path.read_text().splitlines():
            if "SLF001" in line:
                used |= set(re.findall(r"(?<!self)\.(_[a-z]\w*)", line))
    assert used - listed == set()
