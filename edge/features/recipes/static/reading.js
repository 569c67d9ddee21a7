// Reads a recipe: its elements by name and number, what follows a step, and names that are free.

// The type of an action whose command is still to be chosen.
export const UNCHOSEN = "?";

export function stepOf(recipe, name) {
  return recipe.steps.find((step) => step.name === name);
}

export function branchOf(recipe, name) {
  return recipe.branches.find((branch) => branch.name === name);
}

export function actionAt(recipe, number) {
  return recipe.actions[Number(number)];
}

export function transitionAt(recipe, number) {
  return recipe.transitions[number];
}

// Returns the branch, path and place of an element in a path; nothing outside of branches.
export function pathOf(recipe, name) {
  for (const branch of recipe.branches) {
    for (const [number, path] of branch.branches.entries()) {
      const place = path.indexOf(name);
      if (place >= 0) return { branch, number, path, place };
    }
  }
  return null;
}

// Returns a name that no element has: Step2, Step3.
export function freeName(recipe, stem) {
  const used = new Set([...recipe.steps, ...recipe.branches, ...recipe.actions].map(({ name }) => name));
  let number = 1;
  while (used.has(`${stem}${number}`)) number += 1;
  return `${stem}${number}`;
}

// Returns an element and those that follow it in one line, in their order.
export function runOf(recipe, name) {
  const inside = pathOf(recipe, name);
  if (inside) return inside.path.slice(inside.place);
  const found = [name];
  for (;;) {
    const ways = recipe.transitions.filter(({ source, target }) => source === found.at(-1) && !found.includes(target) && !pathOf(recipe, target));
    if (!ways.length) return found;
    found.push(ways.reduce((first, way) => ((way.priority ?? 0) < (first.priority ?? 0) ? way : first)).target);
  }
}

// Returns what stands where an element was that is gone: what led to it, else what follows; the recipe without one.
export function nearest(selection, recipe) {
  const { kind, key, own, recipe: former } = selection;
  const name = kind === "action" ? own?.[0]?.step : kind === "transition" ? own?.[0]?.source : key;
  const ways = former?.transitions ?? [];
  const near = [name, ...ways.filter(({ target }) => target === name).map(({ source }) => source), ...ways.filter(({ source }) => source === name).map(({ target }) => target)];
  const found = near.find((other) => stepOf(recipe, other) || branchOf(recipe, other));
  return found ? { kind: stepOf(recipe, found) ? "step" : "branch", key: found } : { kind: "recipe" };
}

// Returns the number of the transition by which a person means a way from one element to another.
export function numberOf(recipe, source, target) {
  return recipe.transitions.findIndex((way) => way.source === source && way.target === target);
}

// Returns the numbers of the transitions that are tried with one, in their order: people count it from 1, as the chart does.
export function triedWith(recipe, number) {
  const { source } = transitionAt(recipe, number);
  const inside = within(recipe, source);
  const isEntry = inside.has(transitionAt(recipe, number).target);
  const beside = [...recipe.transitions.keys()].filter((other) => recipe.transitions[other].source === source && inside.has(recipe.transitions[other].target) === isEntry);
  return beside.sort((one, other) => (recipe.transitions[one].priority ?? 0) - (recipe.transitions[other].priority ?? 0));
}

// Returns what stands in a branch, also in the branches within it; nothing for a step.
function within(recipe, name, found = new Set()) {
  for (const element of branchOf(recipe, name)?.branches.flat() ?? []) {
    found.add(element);
    within(recipe, element, found);
  }
  return found;
}

// A selection keeps what it selects, and the recipe of then: another person may move, rename or renumber it.
export function remember(selection, recipe) {
  const list = listOf(selection, recipe);
  if (list) Object.assign(selection, { recipe, own: placesIn(selection, list).map((place) => list[place]) });
  return selection;
}

// Gives a selection the names or numbers that its elements have in a recipe; returns whether they are there.
export function follow(selection, recipe) {
  const list = listOf(selection, recipe);
  if (!list || !selection.own) return true;
  const before = placesIn(selection, listOf(selection, selection.recipe));
  const places = selection.own.map((element, at) => (element ? placeOf(selection, element, before[at], recipe) : -1));
  if (places.includes(-1)) return false;
  if (selection.kind === "transition") selection.numbers = places;
  else selection.key = selection.kind === "action" ? String(places[0]) : list[places[0]].name;
  // What it was stays known by the recipe of now.
  return Boolean(remember(selection, recipe));
}

function listOf({ kind }, recipe) {
  return { step: recipe.steps, branch: recipe.branches, action: recipe.actions, transition: recipe.transitions }[kind];
}

function placesIn({ kind, key, numbers }, list) {
  if (kind === "transition") return numbers;
  return [kind === "action" ? Number(key) : list.findIndex(({ name }) => name === key)];
}

// Returns the place of an element in a recipe: as it was, else the only one under its name, else what it has become.
function placeOf(selection, element, number, recipe) {
  const list = listOf(selection, recipe);
  const former = listOf(selection, selection.recipe);
  const text = contentOf(element);
  const equal = [number, ...list.keys()].find((place) => list[place] && contentOf(list[place]) === text);
  if (equal !== undefined) return equal;
  const named = namesakes(element, former).length === 1 ? namesakes(element, list) : [];
  return named.length === 1 ? named[0] : successor(selection, element, number, recipe);
}

// Returns the places of the elements under one name: the name and step of an action, the ends of a transition.
function namesakes(element, list) {
  return [...list.keys()].filter((place) => ["name", "step", "source", "target"].every((member) => list[place][member] === element[member]));
}

// Returns the place of the element that one has become which was renamed, moved, or has got another end; -1 without one.
function successor(selection, element, number, recipe) {
  const known = new Set(listOf(selection, selection.recipe).map(contentOf));
  const isIt = {
    step: (other, place) => place === number && isEqual(element, other, "name") && JSON.stringify(workOf(selection.recipe, element.name)) === JSON.stringify(workOf(recipe, other.name)),
    branch: (other) => isEqual(element, other, "name"),
    action: (other) => isEqual(element, other, "name") || isEqual(element, other, "step"),
    transition: (other) => isEqual(element, other, "target") || isEqual(element, other, "source"),
  }[selection.kind];
  const found = [...listOf(selection, recipe).entries()].filter(([place, other]) => !known.has(contentOf(other)) && isIt(other, place)).map(([place]) => place);
  return found.includes(number) ? number : found.length === 1 ? found[0] : -1;
}

function workOf(recipe, step) {
  return recipe.actions.filter((action) => action.step === step).map((action) => contentOf({ ...action, step: "" }));
}

// Returns whether two elements are the same apart from one member.
function isEqual(one, other, except) {
  return contentOf({ ...one, [except]: "" }) === contentOf({ ...other, [except]: "" });
}

// Returns an element as a text; the gateway leaves members out that have their default.
function contentOf(element) {
  const members = Object.entries(element).filter(([, value]) => value && (typeof value !== "object" || Object.keys(value).length));
  return JSON.stringify(members.sort(([one], [other]) => (one < other ? -1 : 1)));
}
