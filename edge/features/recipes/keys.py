"""What drafts, revisions and tests of recipes keep in Redis."""

from typing import Final

from edge.store.keys import PERMANENT, key, key_of, key_of_two

DRAFT: Final = "until the draft is released or discarded"

recipe_revisions = key_of_two(
    "hash",
    "recipe:revisions:{scope:part}:{id}",
    PERMANENT,
    "The revisions of a Work Master in a scope, by number; `newest` is the number and digest of the released one",
)
recipe_drafts = key("zset", "recipe:drafts", DRAFT, "The ids of the drafts of recipes, by their beginning")
recipe_draft = key_of(
    "hash", "recipe:draft:{id}", DRAFT, "A draft of a recipe, with the text of each version that can be undone"
)
recipe_tests = key("hash", "recipe:tests", PERMANENT, "The tests of recipes, by their ids")
