"""The option that names the node kinds of a site, for commands on files."""

import click

kinds_option = click.option(
    "--kinds",
    "kinds_folder",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Folder of the node kinds of the site, as `[flows] nodes`.",
)
