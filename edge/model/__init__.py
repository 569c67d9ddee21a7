"""The data of the plant as it travels and is stored, and what it says alone; `recipe.py` reads recipes."""
