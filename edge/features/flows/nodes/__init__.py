"""The kinds of node, one file each."""
