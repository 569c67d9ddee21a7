"""`edge schemas`: writes JSON Schemas of the models of every feature, which no other command imports."""

from pathlib import Path

import click

from edge.app import schemas as documents
from edge.cli.terminal.output import counted, print_text, usage_failure


@click.command(epilog="Example: edge schemas /tmp/schemas")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def schemas(directory: Path) -> None:
    """Write JSON Schemas of all payloads and of recipes, and an AsyncAPI document.

    DIRECTORY is created if missing. Other files in it stay.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        texts = dict(documents.schemas()) | {documents.ASYNCAPI_FILE: documents.asyncapi()}
        for name, text in texts.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        usage_failure(f"{directory}: cannot be written: {error.strerror}; name a writable directory")
    print_text(f"{counted(len(texts), 'file')} in {directory}")
