"""How many examples a property tries: all where the slow tests run too, a fifth in the quick run."""

from hypothesis import settings
from hypothesis.internal.conjecture import providers

PROFILE = "the same each time"
QUICK_PROFILE = "a fifth"
_OF_A_PROPERTY = 100

# What lands is judged by the same examples each time; `make fuzz` looks for others. A busy machine may take longer for
# one example than Hypothesis allows by default: the time limit of a test is that of pytest.
settings.register_profile(PROFILE, derandomize=True, deadline=None, max_examples=_OF_A_PROPERTY)
settings.register_profile(QUICK_PROFILE, settings.get_profile(PROFILE), max_examples=_OF_A_PROPERTY // 5)


def examples(most: int) -> int:
    """Return the number of examples of a property that needs others than the 100 of the profile."""
    return most // 5 if settings.get_current_profile_name() == QUICK_PROFILE else most


def omit_constants_of_modules() -> None:
    """Draw no constants that stand in the product's source: to find them, each process parses every file of it.

    Without them a property also keeps its examples when the source of another module changes.
    """
    name = "is_local_module_file"
    if not hasattr(providers, name):
        raise AttributeError(f"this version of Hypothesis has no {name}: adapt tests/examples.py")
    setattr(providers, name, lambda _path: False)
