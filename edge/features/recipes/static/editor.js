// The editor of a draft: commands, properties and findings around its chart. The gateway edits, checks and draws.

import { Chart } from "./chart.js";
import { condition } from "./condition.js";
import { Draft, GONE } from "./draft.js";
import { Ended } from "./ended.js";
import { properties } from "./properties.js";
import { UNCHOSEN, actionAt, branchOf, follow, freeName, nearest, numberOf, pathOf, remember, runOf, stepOf, transitionAt } from "./reading.js";
import { worded } from "./words.js";

const part = (id) => document.getElementById(id);
const root = part("editor");
const texts = JSON.parse(root.dataset.texts);
const offers = JSON.parse(root.dataset.offers);
const draft = new Draft(root.dataset.draft, decide);
const chart = new Chart(part("paper"), texts.kinds, (name) => branchOf(draft.recipe, name)?.branches[0][0]);
const panel = part("properties");
let names = [];
let text = "";
// The version that the text was taken from.
let version = 0;
// The number of the newest change, and whether one is examined.
let examined = 0;
let isExamining = false;
const QUIET_MS = 250;

const shown = properties(panel, { draft, texts, offers, names: () => names, run });
for (const dialog of document.querySelectorAll("dialog[data-asks]")) {
  const input = dialog.querySelector("[name=condition]");
  if (input) condition(input, { draft, texts, names: () => names, step: () => selectedElement() });
}

// Sends a change, or what a function makes of the recipe before it; done, an element is selected: one that is named, or
// the result of a function. Whoever has selected another element meanwhile stays there.
function run(change, after, seen) {
  const selection = chart.selection;
  const changeOf = typeof change === "function" ? change : () => change;
  return draft.change(changeOf, (recipe) => {
    const next = typeof after === "function" ? after(recipe) : after;
    return chart.selection === selection ? next : null;
  }, seen);
}

function say(message, level = "") {
  part("said").textContent = message;
  part("said").className = `said ${level}`;
}

// ------------------------------------------------------------------------------------------------ commands

// The step or branch that a command is about: that of the selected action, the one that a transition leaves.
function selectedElement() {
  const { kind, key, source, numbers } = chart.selection;
  if (kind === "action") return actionAt(draft.recipe, key)?.step ?? "";
  if (kind === "transition") return source || (transitionAt(draft.recipe, numbers[0])?.source ?? "");
  if (kind === "way") return source;
  return kind === "recipe" ? "" : key;
}

function required() {
  if (chart.selection.kind === "recipe" && chart.focused) chart.select(chart.focused);
  const name = selectedElement() || lastStep();
  if (chart.selection.kind === "recipe") chart.select({ kind: "step", key: name });
  return name;
}

function lastStep() {
  const { steps, transitions } = draft.recipe;
  return (steps.findLast(({ name }) => !transitions.some(({ source }) => source === name)) ?? steps.at(-1)).name;
}

function kindOf(name) {
  return branchOf(draft.recipe, name) ? "branch" : "step";
}

// Adds a step where a function says it; its name is free in the recipe of that moment.
async function newStep(changeOf, member = "name") {
  let name = "";
  const change = (recipe) => {
    name = freeName(recipe, texts.new_step);
    const change = changeOf(recipe);
    return change === GONE ? GONE : { ...change, [member]: name };
  };
  if (await run(change, () => ({ kind: "step", key: name }))) shown.edit("name");
}

// A step before an element: in a path that a transition chooses, into that transition.
function before(recipe, name) {
  const place = pathOf(recipe, name);
  const number = place && place.place === 0 ? numberOf(recipe, place.branch.name, name) : -1;
  return number >= 0 ? { change: "insert_on", transition: number } : { change: "insert_before", element: name };
}

// Returns the change that a function makes of the numbers that a selection has in a recipe.
const following = (at, changeOf) => (recipe) => (follow(at, recipe) ? changeOf(at) : GONE);

// Returns the change that a function makes of the number of a path, which an element names.
function ofPath(branch, name, changeOf) {
  return (recipe) => {
    const path = branchOf(recipe, branch)?.branches.findIndex((names) => names.includes(name)) ?? -1;
    return path < 0 ? GONE : changeOf(path);
  };
}

// A step goes with its path, where it is the only one there.
function removal(recipe, name) {
  const { branch, number, path } = pathOf(recipe, name) ?? {};
  const isPath = path?.length === 1 && branch.branches.length > 1;
  return isPath ? { change: "remove_path", branch: branch.name, path: number } : { change: "remove_step", name };
}

async function remove() {
  const at = chart.selection;
  const { kind, key } = at;
  const recipe = draft.recipe;
  const near = selectedElement();
  const beside = [...recipe.transitions].reverse().find(({ target }) => target === near)?.source;
  const branch = pathOf(recipe, key)?.branch.name;
  const after = (next) => [beside, branch, next.steps[0].name].filter((name) => name && (stepOf(next, name) || branchOf(next, name))).map((name) => ({ kind: kindOf(name), key: name }))[0];
  if (kind === "action") await run(following(at, (now) => ({ change: "remove_action", number: Number(now.key) })), { kind: "step", key: near });
  else if (kind === "transition") await run(following(at, (now) => ({ change: "remove_transition", number: now.numbers[0] })), { kind: kindOf(near), key: near });
  else if (kind === "branch") await run({ change: "unwrap", branch: key }, after);
  else if (kind === "step") await run((now) => removal(now, key), after);
  else say(kind === "way" ? texts.implied_transition : texts.select_first, "bad");
}

async function addAction() {
  const step = stepOf(draft.recipe, selectedElement())?.name ?? lastStep();
  // The first command that is offered could be a movement: a person chooses.
  const action = { step, qualifier: "N", interaction: "push_command", type_id: UNCHOSEN };
  let name = "";
  const change = (recipe) => {
    name = freeName(recipe, texts.new_action);
    return { change: "add_action", action: { name, ...action } };
  };
  const last = (recipe) => ({ kind: "action", key: String(recipe.actions.findLastIndex((other) => other.name === name)) });
  if (await run(change, last)) shown.edit("name");
}

const ways = () => [...draft.recipe.steps, ...draft.recipe.branches].map(({ name }) => name);

const COMMANDS = {
  step() {
    const at = chart.selection;
    const name = required();
    const isOwn = at.kind === "transition" && at.numbers.length === 1;
    return newStep(isOwn ? following(at, ({ numbers }) => ({ change: "insert_on", transition: numbers[0] })) : () => ({ change: "insert_after", element: name }));
  },
  before() {
    const name = required();
    return newStep((recipe) => before(recipe, name));
  },
  action: addAction,
  async alternative() {
    const after = required();
    const branch = branchOf(draft.recipe, after);
    const isPath = branch?.type === "selection";
    const prepare = (form) => {
      options(form.elements.to, ways().filter((name) => name !== after), texts.ends_here);
      form.elements.to.closest("label").hidden = isPath;
    };
    await ask("alternative", { step: freeName(draft.recipe, texts.new_step), condition: "" }, prepare, (fields) => {
      const chosen = { step: fields.step.trim(), condition: fields.condition.trim() || "always" };
      const change = isPath ? { change: "add_path", branch: after, ...chosen } : { change: "add_alternative", after, ...chosen, to: fields.to };
      return run(change, { kind: "step", key: chosen.step });
    });
  },
  async parallel() {
    const first = required();
    if (branchOf(draft.recipe, first)?.type === "simultaneous") {
      await newStep(() => ({ change: "add_path", branch: first }), "step");
      return;
    }
    await beside("parallel", first, "simultaneous");
  },
  wrap: () => beside("wrap", required(), ""),
  async jump() {
    const source = required();
    await ask("jump", { condition: "", place: "" }, (form) => options(form.elements.to, ways()), (fields) => {
      const change = { change: "add_way", source, target: fields.to, condition: fields.condition.trim() || "always", place: Number(fields.place) || 0 };
      return run(change, (recipe) => ({ kind: "transition", numbers: [recipe.transitions.length - 1] }));
    });
  },
  remove,
  undo: async () => (await mayStep(-1)) && draft.undo(whereItWas),
  redo: async () => (await mayStep(1)) && draft.redo(whereItWas),
  recipe: () => chart.select({ kind: "recipe" }),
  larger: () => chart.zoom(1),
  smaller: () => chart.zoom(-1),
  apply: () => applyText(),
  unwrap: () => remove(),
  path: () => (branchOf(draft.recipe, chart.selection.key).type === "selection" ? COMMANDS.alternative() : COMMANDS.parallel()),
  earlier({ first }) {
    const branch = chart.selection.key;
    return run(ofPath(branch, first, (path) => (path ? { change: "move_path", branch, path, to: path - 1 } : null)));
  },
  first: ({ first }) => newStep((recipe) => before(recipe, first)),
  remove_path({ first }) {
    const branch = chart.selection.key;
    return run(ofPath(branch, first, (path) => ({ change: "remove_path", branch, path })));
  },
  async copy() {
    const at = chart.selection;
    const step = panel.querySelector("[name=copy_to]").value;
    const last = (recipe) => ({ kind: "action", key: String(recipe.actions.length - 1) });
    const change = (recipe) => (follow(at, recipe) ? { change: "copy_action", number: Number(at.key), step, name: freeName(recipe, texts.new_action) } : GONE);
    if (await run(change, last)) shown.edit("name");
  },
};

// After undo and redo the next command is about the same place.
function whereItWas(recipe) {
  const { selection } = chart;
  return !recipe || selection.kind === "recipe" || follow(selection, recipe) ? null : nearest(selection, recipe);
}

// Returns whether a change may be undone or redone: a person is asked about that of another one.
async function mayStep(direction) {
  const { versions, current } = draft.detail.draft;
  const place = versions.findIndex(({ number }) => number === current);
  const version = versions[direction < 0 ? place : place + 1];
  if (!version || !versions[place + direction] || version.author === root.dataset.user) return true;
  const found = direction < 0 && (await draft.read(`/difference?version=${versions[place - 1].number}`));
  const dialog = part("foreign");
  const { undo, redo } = part("foreign-text").dataset;
  part("foreign-text").textContent = worded(direction < 0 ? undo : redo, { person: version.author || "?" });
  part("foreign-words").replaceChildren(...(found ? found.words : []).map((words) => Object.assign(document.createElement("li"), { textContent: words })));
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  return dialog.returnValue === "yes";
}

// Makes a run of steps the path of a new branch, alone or with a new step beside it.
function beside(id, first, type) {
  const preset = { step: freeName(draft.recipe, texts.new_step), name: freeName(draft.recipe, texts.new_branch) };
  return ask(id, preset, (form) => options(form.elements.last, runOf(draft.recipe, first)), (fields) => {
    const branch = { first, last: fields.last, name: fields.name.trim(), type: type || fields.type };
    if (!type) return run({ change: "wrap", ...branch }, { kind: "branch", key: branch.name });
    const step = fields.step.trim();
    return run({ change: "add_next_to", ...branch, step }, { kind: "step", key: step });
  });
}

function options(select, values, none) {
  select.replaceChildren(...(none ? [new Option(none, "")] : []), ...values.map((value) => new Option(value, value)));
}

// Opens a dialog, and waits until it is closed: by the person, or because the change that `send(fields)` makes is done.
// A refused change leaves it open, with its fields and the reason.
function ask(id, preset, prepare, send) {
  const dialog = part(`ask-${id}`);
  const form = dialog.querySelector("form");
  const refusal = dialog.querySelector(".said");
  const hadFocus = chart.hasFocus;
  form.reset();
  refusal.textContent = "";
  prepare(form);
  for (const [name, value] of Object.entries(preset)) if (form.elements[name]) form.elements[name].value = value;
  dialog.returnValue = "no";
  dialog.showModal();
  form.querySelector("input, textarea, select").select?.();
  let isSending = false;
  const submit = async (event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    refusal.textContent = "";
    const isDone = await send(Object.fromEntries(new FormData(form)));
    isSending = false;
    if (form.onsubmit === submit && (isDone || !refusal.textContent)) dialog.close("yes");
  };
  form.onsubmit = submit;
  return new Promise((resolve) => {
    const closed = () => {
      if (dialog.open) return;
      dialog.removeEventListener("close", closed);
      // The element of the chart that had the focus is drawn anew.
      if (hadFocus || dialog.returnValue !== "yes") chart.focus();
      resolve();
    };
    dialog.addEventListener("close", closed);
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-command]");
  if (!button || button.getAttribute("aria-disabled") === "true") return;
  button.closest("[popover]")?.hidePopover();
  command(button.dataset.command, button.dataset);
});

// A field that was just left is a change, too: the command is about the recipe after it.
async function command(name, given = {}) {
  await draft.settled();
  // A value without a name would be lost with its row.
  if (panel.querySelector("form:not([hidden]) [data-nameless]")) return;
  say("");
  await COMMANDS[name](given);
}

const KEYS = { Insert: "step", Delete: "remove" };
// Letters count while the chart has the focus.
const LETTERS = { a: "action", o: "alternative", p: "parallel", j: "jump", b: "before" };

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const isTyping = event.target.matches?.("input, textarea, select");
  const isControl = event.ctrlKey || event.metaKey;
  const letter = event.key.toLowerCase();
  if (isControl && letter === "s" && !part("text-view").hidden) applyText();
  else if (isTyping && event.key === "Escape") chart.focus();
  else if (isTyping) return;
  else if (isControl && letter === "z" && !event.shiftKey) command("undo");
  else if (isControl && (letter === "y" || (letter === "z" && event.shiftKey))) command("redo");
  else if (!isControl && KEYS[event.key] && !part("chart-view").hidden) command(KEYS[event.key]);
  else if (!isControl && !event.altKey && LETTERS[letter] && chart.hasFocus) command(LETTERS[letter]);
  else return;
  event.preventDefault();
});

// ------------------------------------------------------------------------------------------------ what is shown

draft.addEventListener("changed", ({ detail: after }) => {
  const { detail } = draft;
  const typed = panel.querySelector("form:not([hidden]) [data-dirty]");
  const next = after?.(draft.recipe);
  const isThere = next || !draft.recipe || follow(chart.selection, draft.recipe);
  chart.show(detail.chart, next ?? undefined);
  part("no-chart").hidden = Boolean(detail.chart);
  const canEdit = Boolean(detail.recipe?.steps?.length);
  panel.hidden = !canEdit && !typed;
  for (const button of document.querySelectorAll("[data-needs=recipe]")) button.setAttribute("aria-disabled", String(!canEdit));
  setEnabled("undo", detail.draft.can_undo);
  setEnabled("redo", detail.draft.can_redo);
  const isGone = canEdit && chart.selection.kind !== "recipe" && !(isThere && chart.has(chart.selection));
  // A field that a person writes in stays open: another person may bring its element back.
  if (canEdit && !(isGone && typed)) chart.select(isGone ? { kind: "recipe" } : chart.selection);
  if (!isTextChanged()) showText();
  if (typed && (isGone || !canEdit)) sayGone(typed.value);
  else say("");
  part("saved").textContent = worded(texts.saved, { version: detail.draft.current });
  examine();
});

// Says that an element is gone, and what a person has written there.
function sayGone(typed = "") {
  const { gone, unsaved } = part("said").dataset;
  say(typed ? worded(unsaved, { text: typed }) : gone, "bad");
}

function setEnabled(command, isEnabled) {
  document.querySelector(`.tools [data-command=${command}]`).setAttribute("aria-disabled", String(!isEnabled));
}

draft.addEventListener("refused", ({ detail }) => {
  const sentences = `${detail.reason.replace(/[^.!?]$/, "$&.")} ${detail.advice}`;
  const dialog = document.querySelector("dialog[data-asks][open]");
  if (dialog) dialog.querySelector(".said").textContent = sentences;
  else say(sentences, "bad");
});

draft.addEventListener("gone", () => sayGone());
panel.addEventListener("lost", ({ detail }) => sayGone(detail));
panel.addEventListener("nameless", ({ detail }) => say(detail ? texts.no_name : "", "bad"));

// What another person has released or discarded is continued as a draft of its own, with what was typed meanwhile.
const ended = new Ended(() => ({ ...draft.detail.draft, text: draft.detail.text }), async (detail, revision) => {
  const { id } = detail.draft;
  for (const link of document.querySelectorAll(".links a")) link.search = `?draft=${encodeURIComponent(id)}`;
  if (revision) part("state").textContent = worded(part("state").dataset.of, { revision: revision.number });
  history.replaceState(null, "", `${location.pathname}?draft=${encodeURIComponent(id)}`);
  await draft.continueWith(detail);
  version = detail.draft.current;
  await shown.commit();
});
draft.addEventListener("ended", () => ended.show(draft.detail.draft));

draft.addEventListener("apart", ({ detail: id }) => {
  text = area.value;
  location.assign(`${location.pathname}?draft=${encodeURIComponent(id)}`);
});

// Shows what another person has changed, and returns what is to become of the change of this one. A text would take the
// change of the other person back, and an undo would undo it: neither is made once more.
function decide(path, problem) {
  const dialog = part("conflict");
  part("conflict-text").textContent = problem.reason;
  dialog.querySelector("[value=repeat]").hidden = path !== "change";
  dialog.querySelector("[value=apart]").hidden = path !== "change" && path !== "text";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = () => {
      if (path === "text" && dialog.returnValue === "drop") text = area.value;
      resolve(dialog.returnValue);
    };
    dialog.addEventListener("close", closed, { once: true });
  });
}

chart.addEventListener("selected", () => draft.recipe && shown.show(remember(chart.selection, draft.recipe)));
chart.addEventListener("edit", () => shown.edit());
panel.addEventListener("leave", () => chart.focus());
panel.addEventListener("pick", ({ detail }) => chart.select(detail, { focus: true }));

// ------------------------------------------------------------------------------------------------ findings

// Checks the draft, and reads the names for its conditions, once after several changes: a check takes longer than a
// change, and must not hold up the next one.
async function examine() {
  examined += 1;
  if (isExamining) return;
  isExamining = true;
  for (let number = 0; number !== examined; ) {
    number = examined;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    if (number !== examined) continue;
    const check = await draft.read("/check");
    if (check && number === examined) showFindings(check);
    const offered = number === examined && (await draft.read("/names"));
    if (offered && number === examined) names = offered.names;
  }
  isExamining = false;
}

function showFindings({ problems, findings, warnings }) {
  const all = [
    ...problems.map(({ message, element, number, line, column }) => ({ level: "fault", message, remedy: "", line, column, to: problemAt(element, number) })),
    ...findings.map(({ level, element, message, remedy, line, column }) => ({ level, message, remedy, line, column, to: elementAt(element) })),
    ...warnings.map((message) => ({ level: "warning", message, remedy: "" })),
  ];
  const levels = new Map();
  for (const { level, to } of [...all].reverse()) if (to) levels.set(keyOf(to), level);
  chart.mark(levels);
  part("findings").replaceChildren(...all.map(rowOf));
  part("no-findings").hidden = all.length > 0;
  const faults = all.filter(({ level }) => level === "fault").length;
  part("count").textContent = all.length;
  part("count").className = `count ${faults ? "bad" : all.some(({ level }) => level === "warning") ? "warn" : all.length ? "notes" : "good"}`;
}

function problemAt(element, number) {
  if (number === null || number === undefined) return null;
  if (element === "step") return draft.recipe?.steps[number] && { kind: "step", key: draft.recipe.steps[number].name };
  if (element === "action") return { kind: "action", key: String(number) };
  return element === "transition" ? { kind: "transition", numbers: [number] } : null;
}

function elementAt({ type, name }) {
  const recipe = draft.recipe;
  if (!recipe) return null;
  if (type === "step") return stepOf(recipe, name) && { kind: "step", key: name };
  const number = type === "action" ? recipe.actions.findIndex((action) => action.name === name) : recipe.transitions.findIndex(({ source, target }) => `${source} → ${target}` === name);
  return number < 0 ? null : problemAt(type, number);
}

function keyOf({ kind, key, numbers }) {
  return `${kind}:${numbers ? numbers[0] : key}`;
}

function rowOf({ level, message, remedy, line, column, to }) {
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.className = `finding ${level}`;
  const sign = document.createElement("span");
  sign.className = "sign-of";
  sign.textContent = texts.levels[level];
  const said = document.createElement("span");
  // The number of an element in its list says nothing to a person: the name follows.
  said.textContent = message.replace(/^\w+\[\d+\] \((.*?)\): /, "$1: ");
  if (line) {
    const place = document.createElement("small");
    place.textContent = worded(texts.place, { line, column: column ?? 1 });
    said.append(" ", place);
  }
  if (remedy) {
    const todo = document.createElement("span");
    todo.className = "detail";
    todo.textContent = remedy;
    said.append(document.createElement("br"), todo);
  }
  button.append(sign, said);
  button.addEventListener("click", () => show(to, line, column));
  row.append(button);
  return row;
}

function show(to, line, column) {
  if (to && chart.has(to)) {
    showView("chart");
    chart.select(to, { focus: true });
    if (to.kind === "transition") shown.edit("condition");
    else if (to.kind === "action" && actionAt(draft.recipe, to.key)?.type_id === UNCHOSEN) shown.edit("type_id");
  } else if (line) {
    showView("text");
    goTo(line, column ?? 1);
  }
}

// ------------------------------------------------------------------------------------------------ text

const area = part("text");

function isTextChanged() {
  return area.value !== text;
}

function showText() {
  text = draft.detail.text;
  area.value = text;
  text = area.value;
  version = draft.detail.draft.current;
  part("apply").setAttribute("aria-disabled", "true");
}

async function applyText() {
  if (!isTextChanged()) return true;
  const isDone = await draft.write(area.value, () => version);
  if (isDone) showText();
  return isDone;
}

function goTo(line, column) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, other) => sum + other.length + 1, 0);
  area.focus();
  area.setSelectionRange(start + column - 1, start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(area).lineHeight));
}

area.addEventListener("input", () => part("apply").setAttribute("aria-disabled", String(!isTextChanged())));
area.addEventListener("keyup", showCaret);
area.addEventListener("click", showCaret);

function showCaret() {
  const before = area.value.slice(0, area.selectionStart).split("\n");
  part("caret").textContent = worded(texts.place, { line: before.length, column: before.at(-1).length + 1 });
}

function showView(name) {
  for (const view of ["chart", "text"]) {
    part(`${view}-view`).hidden = view !== name;
    part(`tab-${view}`).setAttribute("aria-selected", String(view === name));
    part(`tab-${view}`).tabIndex = view === name ? 0 : -1;
  }
  for (const button of document.querySelectorAll("[data-needs=recipe]")) button.hidden = name === "text";
  for (const id of ["apply", "caret"]) part(id).hidden = name === "chart";
}

for (const name of ["chart", "text"]) {
  part(`tab-${name}`).addEventListener("click", async () => {
    // One object in two forms: what was written is taken before the chart is shown.
    if (name === "text" || (await applyText())) showView(name);
  });
  part(`tab-${name}`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    part(name === "chart" ? "tab-text" : "tab-chart").focus();
    part(name === "chart" ? "tab-text" : "tab-chart").click();
  });
}

addEventListener("beforeunload", (event) => isTextChanged() && event.preventDefault());
// Another person has changed a draft.
addEventListener("redraw", () => draft.refresh());

await draft.load();
showView("chart");
// Without the draft the page says why, and takes no commands.
if (draft.detail) root.dataset.ready = "";
else for (const button of document.querySelectorAll(".tools button")) button.setAttribute("aria-disabled", "true");
