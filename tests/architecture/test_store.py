"""Nothing in Redis lives for ever by accident, and every script has one typed door."""

import re
from pathlib import Path

import pytest

from edge.store.keys import KEYS, Keys, KeySpec, Lifetime
from tests.architecture.sources import modules, project_files, text

TYPES = {"hash", "list", "set", "stream", "string", "zset"}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_key_has_a_type_and_a_lifetime_and_says_what_it_is_for(key: KeySpec) -> None:
    assert key.type in TYPES
    assert isinstance(key.lifetime, Lifetime)
    assert key.purpose


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_the_reference_page_tells_every_key(key: KeySpec) -> None:
    row = f"| `{key.pattern}` | {key.type} | {key.purpose} | {key.lifetime} |"
    assert row in text(Path("docs/reference/redis.md")).splitlines(), f"docs/reference/redis.md lacks: {row}"


def test_the_table_of_keys_is_what_the_builder_builds() -> None:
    builders = {name for name in vars(Keys) if not name.startswith("_")} - set(Keys.__dataclass_fields__)
    assert {key.name for key in KEYS} == builders


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_key_is_built_as_its_pattern_says(key: KeySpec) -> None:
    build = getattr(Keys("prefix"), key.name)
    fields = re.findall(r"{\w+}", key.pattern)
    assert build(*fields) == f"prefix:{key.pattern}"


def test_every_script_has_exactly_one_typed_wrapper() -> None:
    scripts = [path for path in project_files() if path.suffix == ".lua"]
    wrappers = {
        script.name: [str(path) for path in modules() if re.search(rf"\b{script.stem}(\.lua)?[\"']", text(path))]
        for script in scripts
    }
    assert scripts
    assert all(script.parent == Path("edge/store/lua") for script in scripts)
    assert {name: found for name, found in wrappers.items() if len(found) != 1} == {}


def test_only_the_store_writes_key_names() -> None:
    prefixes = {key.pattern.partition("{")[0] for key in KEYS if ":" in key.pattern.partition("{")[0]}
    spelled = {
        str(path): found
        for path in modules()
        if path.parts[1] != "store"
        and (found := [prefix for prefix in sorted(prefixes) if re.search(rf"[\"':]{re.escape(prefix)}", text(path))])
    }
    assert spelled == {}
