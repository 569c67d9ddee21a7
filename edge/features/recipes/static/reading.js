// Reads a recipe: its elements by name and number, what follows a step, and names that are free.

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

// A selection keeps what its actions or transitions are: their numbers change when another person adds or removes some.
export function remember(selection, recipe) {
  const list = listOf(selection, recipe);
  if (list) selection.own = numbersIn(selection).map((number) => ({ element: list[number], isOnly: namesakes(list[number], list).length === 1 }));
  return selection;
}

// Gives a selection the numbers that its actions or transitions have in a recipe; returns whether they are there.
export function follow(selection, recipe) {
  const list = listOf(selection, recipe);
  if (!list) return true;
  const numbers = numbersIn(selection);
  const places = selection.own.map((own, at) => placeOf(own, list, numbers[at]));
  if (places.includes(-1)) return false;
  if (selection.kind === "action") selection.key = String(places[0]);
  else selection.numbers = places;
  return true;
}

function listOf({ kind }, recipe) {
  return { action: recipe.actions, transition: recipe.transitions }[kind];
}

function numbersIn({ key, numbers }) {
  return numbers ?? [Number(key)];
}

// Returns the place of an element in a list: as it was, else the only one under its name; -1 where it is gone.
function placeOf({ element, isOnly }, list, number) {
  const text = JSON.stringify(element);
  const equal = [number, ...list.keys()].find((place) => JSON.stringify(list[place]) === text);
  if (equal !== undefined) return equal;
  const named = isOnly ? namesakes(element, list) : [];
  return named.length === 1 ? named[0] : -1;
}

// Returns the places of the elements under one name: the name and step of an action, the ends of a transition.
function namesakes(element, list) {
  return [...list.keys()].filter((place) => ["name", "step", "source", "target"].every((member) => list[place][member] === element?.[member]));
}
