"""The prepared modules are those that a gateway imports."""

import subprocess
import sys
from pathlib import Path

START = """
import sys
from pathlib import Path
from edge.prepared_modules import use_prepared_modules
assert use_prepared_modules(Path(sys.argv[1]))
from edge.stand_ins import import_paho, import_structlog
import_structlog()
import_paho()
import edge.app.lifecycle
from edge.opcua.generated_structures import import_asyncua
import_asyncua()
import edge.app.opcua, edge.app.telemetry, edge.flows.runner, edge.uaserver.server
specs = {name: getattr(module, "__spec__", None) for name, module in sys.modules.items()}
loaders = {name: type(spec.loader).__name__ for name, spec in specs.items() if spec}
print(*(name for name, each in loaders.items() if each == "SourceFileLoader" and "." in name))
print(*(name for name, each in loaders.items() if each == "_PreparedLoader"))
"""


def test_prepared_modules_are_those_of_a_start(tmp_path: Path) -> None:
    file = tmp_path / "start.modules"
    subprocess.run([sys.executable, "-m", "edge.app.write_prepared_modules", "--file", str(file)], check=True)
    usual, prepared = subprocess.check_output([sys.executable, "-c", START, str(file)], text=True).splitlines()
    # Those that Python and this module need before.
    rooms = ("edge.", "asyncua.", "asyncio.", "structlog.")
    assert {name for name in usual.split() if name.startswith(rooms)} == {"edge.prepared_modules"}
    assert {"asyncua.ua.uaprotocol_auto", "edge.app.wiring", "edge.store.opening"} <= set(prepared.split())
    assert not {name for name in prepared.split() if name.startswith(("edge.cli.", "edge.sim.", "edge.web."))}


FLAGS_OF_PYTHON_3_13 = """
import marshal, re
from edge.app.write_prepared_modules import compiled_patterns
class NoFlags(int):
    pass
vars(re)["_cache"][str, "a+", NoFlags()] = re.compile("a+")
assert ("a+", 0) in marshal.loads(marshal.dumps(compiled_patterns()))
"""


def test_expression_without_flags_in_the_form_of_python_3_13_is_written() -> None:
    """There `re.sub` without flags keeps an instance of a class of its own: the package had no prepared file."""
    subprocess.run([sys.executable, "-c", FLAGS_OF_PYTHON_3_13], check=True)


NODE_NUMBERS = """
import sys
from pathlib import Path
if len(sys.argv) > 1:
    from edge.prepared_modules import use_prepared_modules
    assert use_prepared_modules(Path(sys.argv[1]))
from asyncua.ua import object_ids
from asyncua import ua
numbers = [each for each in vars(ua.ObjectIds).items() if not each[0].startswith("__")]
names = sorted(name for name in vars(object_ids) if not name.startswith("__"))
print(type(object_ids.__spec__.loader).__name__, ua.ObjectIds, type(ua.ObjectIds), names, object_ids.__file__)
print(numbers, [*ua.ObjectIdNames.items()], type(ua.ObjectIdNames), ua.ObjectIds.Server is None)
"""


def test_prepared_node_numbers_are_those_of_asyncua(tmp_path: Path) -> None:
    file = tmp_path / "start.modules"
    subprocess.run([sys.executable, "-m", "edge.app.write_prepared_modules", "--file", str(file)], check=True)
    usual, prepared = (
        subprocess.check_output([sys.executable, "-c", NODE_NUMBERS, *arguments], text=True)
        for arguments in ([], [str(file)])
    )
    assert prepared == usual.replace("SourceFileLoader", "_PreparedLoader", 1)
    assert len(prepared) > 1_000_000
