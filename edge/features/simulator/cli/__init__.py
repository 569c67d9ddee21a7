"""Commands that simulate devices, recipes and a plant."""
