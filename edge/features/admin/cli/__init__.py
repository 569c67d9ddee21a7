"""Commands that examine, save and restore a gateway."""
