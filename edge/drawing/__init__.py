"""How a recipe is drawn: pure functions from a recipe, and what its run shows of it, to a picture or lines of text."""
