"""The files of the project, as the architecture tests look at them."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def project_files() -> tuple[Path, ...]:
    """Return every file of the project, relative to its root: what git tracks or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted(path for name in listed.split("\0") if name and (ROOT / (path := Path(name))).is_file()))


@cache
def modules(folder: str = "edge") -> tuple[Path, ...]:
    """Return the Python files below a top-level folder."""
    return tuple(path for path in project_files() if path.suffix == ".py" and path.parts[0] == folder)


@cache
def text(path: Path) -> str:
    """Read a file of the project; what is not a text reads as empty."""
    return (ROOT / path).read_bytes().decode(errors="ignore")


@cache
def syntax(path: Path) -> ast.Module:
    """Parse a Python file of the project."""
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a Python file of the project: a walk takes as long as the parse, and each rule needs one."""
    return tuple(ast.walk(syntax(path)))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a file, methods and inner functions too."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
