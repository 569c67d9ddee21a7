"""The one expression language of recipes, rules and flows: parse, check, evaluate with unknown values."""
