"""The changes that an engineer makes to a recipe, as values: a page, a command or a program sends them as JSON.

Steps and branches are named by their name, transitions and actions by their place in the list of the recipe.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from edge.model.recipe import Action, BranchType, Intervention, Locks, OptionalText, Step, Transition


class RecipeChange(Struct, frozen=True, forbid_unknown_fields=True, tag_field="change"):
    """A change of a recipe; `change` is its kind."""


class InsertAfter(RecipeChange, frozen=True, tag="insert_after"):
    """Insert a step after a step or branch: it takes the way on, and leaves by `always`."""

    element: str
    name: str


class InsertBefore(RecipeChange, frozen=True, tag="insert_before"):
    """Insert a step before a step or branch: every way in leads to it, and it leaves by `always`."""

    element: str
    name: str


class InsertOn(RecipeChange, frozen=True, tag="insert_on"):
    """Insert a step into a transition, which keeps its condition and leads to it."""

    transition: int
    name: str


class AddBranch(RecipeChange, frozen=True, tag="add_branch"):
    """Make what stands between two elements the first path of a new branch, and a new step the second one.

    `condition` chooses the new path of a selection.
    """

    after: str
    until: str
    type: BranchType
    name: str
    step: str
    condition: str = "always"


class AddNextTo(RecipeChange, frozen=True, tag="add_next_to"):
    """Make a run of elements the first path of a new branch, and a new step the second one.

    `condition` chooses the new path of a selection.
    """

    first: str
    last: str
    type: BranchType
    name: str
    step: str
    condition: str = "always"


class AddAlternative(RecipeChange, frozen=True, tag="add_alternative"):
    """Add a step as another way on from an element; it leads to `to`, and without one the job ends there.

    It is tried after the ways that the element has, and before one that is always true.
    """

    after: str
    step: str
    condition: str = "always"
    to: str = ""


class Wrap(RecipeChange, frozen=True, tag="wrap"):
    """Make a run of elements the only path of a new branch."""

    first: str
    last: str
    type: BranchType
    name: str


class Unwrap(RecipeChange, frozen=True, tag="unwrap"):
    """Replace a branch of one path by that path; its locks become locks of the elements."""

    branch: str


class AddPath(RecipeChange, frozen=True, tag="add_path"):
    """Add a path with one new step at the end of a branch; `condition` chooses it in a selection."""

    branch: str
    step: str
    condition: str = "always"


class MovePath(RecipeChange, frozen=True, tag="move_path"):
    """Move a path of a branch to another place; paths are counted from 0."""

    branch: str
    path: int
    to: int


class RemovePath(RecipeChange, frozen=True, tag="remove_path"):
    """Remove a path with its steps, their actions, and the transitions from and to them."""

    branch: str
    path: int


class RemoveStep(RecipeChange, frozen=True, tag="remove_step"):
    """Remove a step with its actions; the transition into it leads on to what came after it."""

    name: str


class RenameElement(RecipeChange, frozen=True, tag="rename_element"):
    """Rename a step or branch; paths, transitions, actions and conditions follow."""

    name: str
    to: str


class RenameAction(RecipeChange, frozen=True, tag="rename_action"):
    """Rename an action in every step where it stands; conditions follow."""

    name: str
    to: str


class SetInitial(RecipeChange, frozen=True, tag="set_initial"):
    """Make a step the initial one."""

    step: str


class SetStep(RecipeChange, frozen=True, tag="set_step"):
    """Set the properties of a step; `name` and `initial` of the properties do not count."""

    name: str
    step: Step


class SetBranch(RecipeChange, frozen=True, tag="set_branch"):
    """Set the locks of a branch, which are locks of all its steps."""

    name: str
    lock: Locks = ()
    lock_timeout_seconds: float = 0


class AddTransition(RecipeChange, frozen=True, tag="add_transition"):
    """Add a transition, such as a jump, or the written form of an implied one of a path."""

    transition: Transition


class AddWay(RecipeChange, frozen=True, tag="add_way"):
    """Add a way from an element to another one, such as a jump: as the `place`-th that is tried, counted from 1.

    Without a place it is tried after the ways that the element has, and before one that is always true.
    """

    source: str
    target: str
    condition: str = "always"
    place: Annotated[int, Meta(ge=0)] = 0


class MoveTransition(RecipeChange, frozen=True, tag="move_transition"):
    """Make a transition the `place`-th that is tried of those next to it, counted from 1: all get that as priority."""

    number: int
    place: Annotated[int, Meta(ge=1)]


class SetTransition(RecipeChange, frozen=True, tag="set_transition"):
    """Replace a transition: its condition, its priority, or where a jump leads."""

    number: int
    transition: Transition


class RemoveTransition(RecipeChange, frozen=True, tag="remove_transition"):
    """Remove a written transition, such as a jump."""

    number: int


class AddAction(RecipeChange, frozen=True, tag="add_action"):
    """Add an action at the end of those of its step."""

    action: Action


class SetAction(RecipeChange, frozen=True, tag="set_action"):
    """Replace an action, also by one of another step; `rename_action` renames it everywhere."""

    number: int
    action: Action


class CopyAction(RecipeChange, frozen=True, tag="copy_action"):
    """Copy an action to a step; under another name it is an action of its own."""

    number: int
    step: str
    name: str


class RemoveAction(RecipeChange, frozen=True, tag="remove_action"):
    """Remove one action of one step."""

    number: int


class SetRecipe(RecipeChange, frozen=True, tag="set_recipe"):
    """Set the properties of the recipe; what is left out is removed."""

    interventions: tuple[Intervention, ...] = ()
    verdict: str | UnsetType = UNSET
    title: OptionalText = UNSET
    description: OptionalText = UNSET


Change: TypeAlias = (
    InsertAfter
    | InsertBefore
    | InsertOn
    | AddBranch
    | AddNextTo
    | AddAlternative
    | Wrap
    | Unwrap
    | AddPath
    | MovePath
    | RemovePath
    | RemoveStep
    | RenameElement
    | RenameAction
    | SetInitial
    | SetStep
    | SetBranch
    | AddTransition
    | AddWay
    | MoveTransition
    | SetTransition
    | RemoveTransition
    | AddAction
    | SetAction
    | CopyAction
    | RemoveAction
    | SetRecipe
)
