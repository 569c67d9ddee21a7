"""Asks people at the station: prompts of recipes, and their answers."""
