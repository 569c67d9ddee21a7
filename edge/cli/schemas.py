"""`edge schemas`: writes the JSON Schemas of everything that travels."""

from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import usage_failure


@click.command(epilog="Example: edge schemas /tmp/schemas")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def schemas(directory: Path) -> None:
    """Write the JSON Schemas of all payloads, and of recipes.

    DIRECTORY is made where it is missing. What else is in it stays.
    """
    from edge.model.schemas import schemas as made

    try:
        directory.mkdir(parents=True, exist_ok=True)
        texts = dict(made())
        for name, text in texts.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        usage_failure(f"{directory}: cannot be written: {error.strerror}; name a directory where you may write")
    print_text(f"{len(texts)} schemas in {directory}")
