"""asyncua whose structures become dataclasses late behaves like the original; each test runs in its own process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

DESCRIBE = """
import dataclasses, inspect, pickle, re
import asyncua.ua.uaprotocol_auto as generated
import asyncua.ua.uaprotocol_hand as written
found = [each for module in (generated, written) for each in vars(module).values()]
structures = [each for each in found if isinstance(each, type) and dataclasses.is_dataclass(each)]
structures = sorted({f"{each.__module__} {each.__name__}": each for each in structures}.items())
for name, structure in structures:
    try:
        made = structure()
    except (NameError, TypeError) as error:
        print(name, "cannot be made", error)
        continue
    try:
        structure(*range(99), Unknown=1)
    except TypeError as error:
        print(error)
    copied = pickle.loads(pickle.dumps(made))
    shown = re.sub("datetime\\([^)]*\\)|0x[0-9a-f]+", "", repr(made))
    signature = inspect.signature(structure.__init__)
    names = [structure.__init__.__qualname__, structure.__repr__.__name__]
    compared = made == copied, made != copied, made == object(), structure.__hash__ is None
    print(name, shown, signature, names, compared, structure.__match_args__)
"""
PREPARED = "from edge.opcua.generated_structures import import_asyncua; import_asyncua()"
NOT_COMPLETE = f"""
{PREPARED}
import dataclasses
import asyncua.ua.uaprotocol_auto as generated
found = [each for each in vars(generated).values() if isinstance(each, type) and each.__module__ == generated.__name__]
incomplete = [each for each in found if type(vars(each).get("__dataclass_fields__")).__name__ == "_Incomplete"]
complete = [each.__name__ for each in found if isinstance(vars(each).get("__dataclass_fields__"), dict)]
print(len(incomplete) > 300, complete, dataclasses.dataclass.__module__)
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_structures_behave_like_the_original_ones() -> None:
    delivered = run(DESCRIBE)
    assert delivered.count("\n") > 300
    assert run(f"{PREPARED}\n{DESCRIBE}") == delivered


def test_import_completes_no_structure() -> None:
    assert run(NOT_COMPLETE).split() == ["True", "[]", "dataclasses"]


AT_ONCE = f"""
{PREPARED}
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import asyncua.ua.uaprotocol_auto as generated
sys.setswitchinterval(1e-6)
found = [each for each in vars(generated).values() if isinstance(each, type)]
structures = [each for each in found if "__dataclass_fields__" in vars(each)]
starts = Barrier(4)
def make(structure):
    starts.wait()
    try:
        structure() == structure()
    except NameError:
        pass  # one structure of asyncua cannot be made
with ThreadPoolExecutor(4) as pool:
    for structure in structures:
        for made in [pool.submit(make, structure) for _ in range(4)]:
            made.result()
print(len(structures) > 300)
"""


def test_threads_can_use_a_structure_for_the_first_time_at_once() -> None:
    assert run(AT_ONCE) == "True\n"


def test_version_of_asyncua_is_that_of_its_distribution() -> None:
    shown = "import asyncua; print(asyncua.__version__, asyncua.Client.__name__)"
    assert run(f"{PREPARED}\n{shown}") == run(shown)
