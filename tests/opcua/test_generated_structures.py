"""asyncua with lazily compiled methods behaves like the original; each test runs in its own process."""

import subprocess
import sys

DESCRIBE = """
import dataclasses, inspect, pickle, re
import asyncua.ua.uaprotocol_auto as generated
structures = [each for each in vars(generated).values() if isinstance(each, type) and dataclasses.is_dataclass(each)]
structures = sorted({each.__name__: each for each in structures}.items())
for name, structure in structures:
    try:
        made = structure()
    except NameError as error:
        print(name, "cannot be made", error)
        continue
    try:
        structure(*range(99), Unknown=1)
    except TypeError as error:
        print(error)
    copied = pickle.loads(pickle.dumps(made))
    written = re.sub("datetime\\([^)]*\\)|0x[0-9a-f]+", "", repr(made))
    signature = inspect.signature(structure.__init__)
    names = [structure.__init__.__qualname__, structure.__repr__.__name__]
    compared = made == copied, made != copied, made == object(), structure.__hash__ is None
    print(name, written, signature, names, compared, structure.__match_args__)
"""
PREPARED = "from edge.opcua.generated_structures import import_asyncua; import_asyncua()"
NOT_COMPILED = f"""
{PREPARED}
import dataclasses, types
import asyncua.ua.uaprotocol_auto as generated
found = [each for each in vars(generated).values() if isinstance(each, type) and each.__module__ == generated.__name__]
structures = [each for each in found if dataclasses.is_dataclass(each)]
methods = [(each.__name__, vars(each).get("__init__")) for each in structures]
codes = [(name, method.__code__) for name, method in methods if isinstance(method, types.FunctionType)]
compiled = [name for name, code in codes if code.co_filename == "<string>"]
print(len(structures) > 300, compiled, dataclasses.dataclass.__module__)
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_lazily_compiled_structures_behave_like_the_original_ones() -> None:
    delivered = run(DESCRIBE)
    assert delivered.count("\n") > 300
    assert run(f"{PREPARED}\n{DESCRIBE}") == delivered


def test_import_compiles_no_method_of_a_structure() -> None:
    assert run(NOT_COMPILED).split() == ["True", "[]", "dataclasses"]
