"""Recipes as engineers work with them: checked before they run, edited, tested, released."""
