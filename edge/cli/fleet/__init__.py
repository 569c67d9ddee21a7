"""`edge fleet`: shows the components of a plant."""
