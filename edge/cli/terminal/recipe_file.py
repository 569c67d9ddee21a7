"""Compiles recipes for commands."""

from edge.cli.terminal.store_access import usage_failure
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.net import Net


def compiled_or_exit(data: object) -> Net:
    """Compile a recipe; print its faults and exit with status 2 when it is rejected."""
    net = compile_recipe(data)
    if isinstance(net, RejectedRecipe):
        usage_failure(*net.faults)
    return net
