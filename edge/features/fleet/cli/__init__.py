"""`edge fleet`: shows the components of a plant, and sends them signed commands."""
