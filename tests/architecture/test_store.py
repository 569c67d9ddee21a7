"""Every Redis key has a documented purpose, and every Lua script has one typed wrapper."""

import re
from pathlib import Path

from edge.app.features import features
from edge.store.keys import Keys, key_specs
from tests.architecture.sources import modules, project_files, text


def is_of_keys(path: Path) -> bool:
    """Return whether a module defines the keys of a feature."""
    return path.match("edge/features/*/keys.py")


BUILDERS = {name for name in dir(Keys) if not name.startswith("_")} - set(Keys.__struct_fields__)


def test_every_key_has_a_table_row_with_its_purpose() -> None:
    assert {key.name for key in key_specs() if key.purpose} >= BUILDERS


def test_key_that_only_a_feature_uses_stands_in_its_folder() -> None:
    """To remove Sparkplug took a second row, in the table of the core."""
    core = "\n".join(text(path) for path in modules() if path.parts[1] != "features")
    assert {name for name in BUILDERS if not re.search(rf"\.{name}\b", core)} == set()


def test_keys_of_every_feature_are_declared() -> None:
    of_features = {".".join(path.with_suffix("").parts) for path in modules() if is_of_keys(path)}
    assert {feature.keys for feature in features() if feature.keys} == of_features


def test_reference_page_lists_exactly_the_store_keys() -> None:
    features()
    rows = [row for row in text(Path("docs/reference/redis.md")).splitlines() if row.startswith("| `")]
    assert rows == [f"| `{key.pattern}` | {key.type} | {key.purpose} | {key.lifetime} |" for key in key_specs()]


def test_every_lua_script_has_exactly_one_typed_wrapper() -> None:
    scripts = [path for path in project_files() if path.suffix == ".lua"]
    wrappers = {
        script.name: [str(path) for path in modules() if re.search(rf"\b{re.escape(script.name)}[\"']", text(path))]
        for script in scripts
    }
    assert scripts
    assert {name: found for name, found in wrappers.items() if len(found) != 1} == {}
    assert {script.name for script in scripts if script.parent.parent == Path("edge/store")} == {"commit.lua"}


def test_only_the_store_writes_key_names() -> None:
    prefixes = {key.pattern.partition("{")[0] for key in key_specs() if ":" in key.pattern.partition("{")[0]}
    spelled = {
        str(path): found
        for path in modules()
        if path.parts[1] != "store"
        and not is_of_keys(path)
        and (found := [prefix for prefix in sorted(prefixes) if re.search(rf"[\"':]{re.escape(prefix)}", text(path))])
    }
    assert spelled == {}
