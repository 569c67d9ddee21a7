// The properties of the selected element: each field is a change of its own, sent when it is left or with Enter.

import { complete, fitting } from "./complete.js";
import { condition } from "./condition.js";
import { GONE } from "./draft.js";
import { UNCHOSEN, actionAt, branchOf, follow, numberOf, remember, stepOf, transitionAt, triedWith } from "./reading.js";

const TIMED = new Set(["L", "D", "SD", "DS", "SL"]);
const language = document.documentElement.lang;

// `run(change, selection)` sends a change, and selects an element after it.
export function properties(panel, { draft, texts, offers, names, run }) {
  const forms = Object.fromEntries([...panel.querySelectorAll("form[data-kind]")].map((form) => [form.dataset.kind, form]));
  let selection = { kind: "recipe" };
  // What each form shows: a field is still left when its element is gone.
  const shownIn = new Map();
  const seenIn = new Map();

  const parts = { draft, names, texts, step: () => sourceOf(selection) };
  const verdict = condition(forms.recipe.elements.verdict, { ...parts, step: () => "" });
  complete(forms.action.elements.type_id, (text) => ({
    from: 0,
    items: fitting(offers.map(({ type_id, equipment }) => ({ text: type_id, hint: equipment })), offers.some((offer) => offer.type_id === text) ? "" : text),
  }));

  // Shows an element; what a person is typing stays.
  function show(next) {
    const isSame = next === selection;
    selection = next;
    const kind = next.kind === "way" ? "transition" : next.kind;
    for (const [name, form] of Object.entries(forms)) form.hidden = name !== kind;
    const form = forms[kind];
    shownIn.set(form, next);
    if (!isSame) for (const field of form.elements) delete field.dataset.dirty;
    SHOWN[kind]?.(form, draft.recipe, next, isSame);
  }

  const SHOWN = {
    recipe(form, recipe) {
      fill(form, { title: textOf(recipe.title), description: textOf(recipe.description), verdict: recipe.verdict ?? "" });
      for (const box of form.querySelectorAll("[name=interventions]")) box.checked = (recipe.interventions ?? []).includes(box.value);
      if (recipe.verdict) verdict.check();
    },
    step(form, recipe, { key }) {
      const step = stepOf(recipe, key);
      if (!step) return;
      fill(form, {
        name: step.name,
        title: textOf(step.title),
        initial: Boolean(step.initial),
        lock: (step.lock ?? []).join(", "),
        lock_timeout_seconds: step.lock_timeout_seconds || "",
      });
      form.elements.initial.disabled = Boolean(step.initial);
      fillInterventions(form, step.interventions);
      const own = [...recipe.actions.entries()].filter(([, action]) => action.step === key);
      list(form.querySelector("[data-list=actions]"), own.map(([number, action]) => pick(`${action.qualifier} ${action.name}`, { kind: "action", key: String(number) })));
    },
    action(form, recipe, { key }) {
      const action = actionAt(recipe, key);
      if (!action) return;
      options(form.elements.step, recipe.steps.map(({ name }) => name));
      options(form.elements.copy_to, recipe.steps.map(({ name }) => name));
      fill(form, {
        name: action.name,
        step: action.step,
        copy_to: action.step,
        type_id: action.type_id === UNCHOSEN ? "" : action.type_id,
        interaction: action.interaction,
        qualifier: action.qualifier,
        timeout_seconds: action.timeout_seconds || "",
        duration_seconds: action.duration_seconds || "",
        title: textOf(action.title),
      });
      form.elements.duration_seconds.closest("label").hidden = !TIMED.has(action.qualifier);
      fillInterventions(form, action.interventions);
      const offer = offers.find(({ type_id }) => type_id === action.type_id);
      fillParameters(form.querySelector("[data-list=parameters]"), action.parameters ?? {}, offer);
    },
    transition(form, recipe, next, isSame) {
      const place = form.querySelector("[data-list=ways]");
      const numbers = next.kind === "way" ? [-1] : next.numbers;
      if (!isSame || place.children.length !== numbers.length) {
        place.replaceChildren(...numbers.map(() => form.querySelector("template").content.firstElementChild.cloneNode(true)));
        for (const [at, part] of [...place.children].entries()) part.condition = condition(field(part, "condition"), { ...parts, step: () => sourceOf(next, at) });
      }
      for (const [at, part] of [...place.children].entries()) {
        const way = next.kind === "way" ? { source: next.source, target: next.target, condition: "always" } : transitionAt(recipe, numbers[at]);
        if (!way) continue;
        const elements = [...recipe.steps, ...recipe.branches].map(({ name }) => name);
        for (const end of ["source", "target"]) options(field(part, end), elements);
        fillFields((name) => field(part, name), { source: way.source, target: way.target, condition: way.condition });
        const order = next.kind === "way" ? [] : triedWith(recipe, numbers[at]);
        const place = field(part, "place");
        place.closest("label").hidden = order.length < 2;
        place.max = order.length;
        fillFields(() => place, { place: order.indexOf(numbers[at]) + 1 });
        part.condition.check();
      }
      form.querySelector("[data-implied]").hidden = next.kind !== "way";
      form.querySelector("[data-command=remove]").hidden = next.kind === "way";
    },
    branch(form, recipe, { key }) {
      const branch = branchOf(recipe, key);
      if (!branch) return;
      fill(form, { name: branch.name, lock: (branch.lock ?? []).join(", "), lock_timeout_seconds: branch.lock_timeout_seconds || "" });
      form.querySelector("[data-type]").textContent = texts[branch.type];
      form.querySelector("[data-command=unwrap]").hidden = branch.branches.length > 1;
      list(form.querySelector("[data-list=paths]"), branch.branches.map((path, number) => pathRow(form, path, number, branch.branches.length)));
    },
  };

  function pathRow(form, path, number, count) {
    const row = form.querySelector("template").content.firstElementChild.cloneNode(true);
    row.querySelector("[data-path]").textContent = path.join(" → ");
    for (const button of row.querySelectorAll("button")) button.dataset.first = path[0];
    row.querySelector("[data-command=earlier]").disabled = number === 0;
    row.querySelector("[data-command=remove_path]").disabled = count === 1;
    return row;
  }

  function pick(text, to) {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    button.addEventListener("click", () => panel.dispatchEvent(new CustomEvent("pick", { detail: to })));
    row.append(button);
    return row;
  }

  // Sends what a field says about its element; the change is made from the recipe that the changes before have left.
  async function commit(target) {
    // Enter and leaving the field both ask for it: a change is sent once.
    if (target.dataset.dirty === undefined || target.matches("[data-still]")) return true;
    // The value of a new parameter is still to come: until then its name is kept here.
    if (target.name === "parameter" && target.value.trim() && !field(target.closest(".pair"), "value").value) return true;
    const row = target.closest(".pair");
    if (row && isNameless(row)) {
      row.dataset.nameless = "";
      panel.dispatchEvent(new CustomEvent("nameless", { detail: true }));
      return false;
    }
    if (row?.dataset.nameless !== undefined) {
      delete row.dataset.nameless;
      panel.dispatchEvent(new CustomEvent("nameless", { detail: false }));
    }
    // Name and value of a parameter are sent together.
    for (const part of row?.querySelectorAll("input") ?? [target]) delete part.dataset.dirty;
    const at = shownIn.get(target.form);
    const typed = target.value;
    const given = givenBy(target);
    const done = (recipe) => {
      // What this person has changed is what they have seen; a row of a list may have been drawn anew.
      if (seenIn.has(target) && target.form) seenIn.set(target, seenBy(target, at, recipe));
      return after(given, at, recipe);
    };
    let change = null;
    const isDone = await run((recipe) => (change = changeOf(given, at, recipe, offers)), done, () => seenIn.get(target));
    if (change === GONE) panel.dispatchEvent(new CustomEvent("lost", { detail: typed }));
    if (isDone && target.dataset.dirty === undefined) seenIn.delete(target);
    if (!isDone && target.isConnected && target.value === typed) target.dataset.dirty = "";
    return isDone;
  }

  panel.addEventListener("input", ({ target }) => {
    if (!target.name) return;
    // What a person sees who begins to write: another one may change it until the field is left.
    if (target.dataset.dirty === undefined) seenIn.set(target, seenBy(target, shownIn.get(target.form), draft.recipe));
    target.dataset.dirty = "";
  });
  // The keys of a panel write into a field without a change that the browser sees.
  for (const name of ["change", "focusout"]) panel.addEventListener(name, ({ target }) => commit(target));
  panel.addEventListener("submit", async (event) => {
    event.preventDefault();
    const target = document.activeElement;
    if (panel.contains(target) && !(await commit(target))) return;
    // A new action does nothing until its command is chosen.
    if (target.name === "name" && target.form.elements.type_id?.value === "") {
      target.form.elements.type_id.focus();
      return;
    }
    panel.dispatchEvent(new Event("leave"));
  });

  return {
    show,
    // Sends what stands in fields and could not be sent before.
    async commit() {
      for (const target of panel.querySelectorAll("[data-dirty]")) await commit(target);
    },
    // Moves the focus to a field of the element, by default its first one.
    edit(name) {
      const form = [...panel.querySelectorAll("form[data-kind]")].find((other) => !other.hidden);
      const target = (name && form.querySelector(`[name="${name}"]`)) || form.querySelector("textarea, input, select");
      target.focus();
      target.select?.();
    },
  };
}

function sourceOf(selection, at = 0) {
  return at ? "" : (selection.source ?? "");
}

function field(part, name) {
  return part.querySelector(`[name=${name}]`);
}

function fill(form, values) {
  fillFields((name) => form.elements[name], values);
}

function fillFields(fieldOf, values) {
  for (const [name, value] of Object.entries(values)) {
    const target = fieldOf(name);
    if (target.dataset.dirty !== undefined) continue;
    if (target.type === "checkbox") target.checked = value;
    else target.value = value;
  }
}

function fillInterventions(form, own) {
  form.elements.own_interventions.checked = Boolean(own);
  for (const box of form.querySelectorAll("[name=interventions]")) {
    box.checked = Boolean(own?.includes(box.value));
    box.disabled = !own;
  }
}

// Parameters of stored recipes have a row of their own, further ones of the equipment are offered.
function fillParameters(place, parameters, offer) {
  // While a person types in them they stay: a new row has no name yet.
  const isTyping = place.contains(document.activeElement) || place.querySelector("[data-nameless]");
  if (isTyping && place.querySelector("[data-dirty]")) return;
  const template = place.parentElement.querySelector("template").content.firstElementChild;
  const rows = [...Object.entries(parameters), ...Object.keys(offer?.parameters ?? {}).filter((name) => !(name in parameters)).map((name) => [name, ""]), ["", ""]];
  const focused = place.contains(document.activeElement) ? [...place.querySelectorAll("input")].indexOf(document.activeElement) : -1;
  place.filled = parameters;
  place.replaceChildren(
    ...rows.map(([name, value]) => {
      const row = template.cloneNode(true);
      field(row, "parameter").value = name;
      field(row, "value").value = written(value);
      offerParameter(row, offer?.known ?? []);
      return row;
    }),
  );
  if (focused >= 0) place.querySelectorAll("input")[Math.min(focused, rows.length * 2 - 1)].focus();
}

function offerParameter(row, known) {
  const [name, value] = [field(row, "parameter"), field(row, "value")];
  const named = () => known.find((parameter) => parameter.name === name.value.trim());
  const explain = () => {
    if (named()?.meaning) value.placeholder = named().meaning;
  };
  const offered = (items) => (text) => ({ from: 0, items: fitting(items(), items().some((item) => item.text === text) ? "" : text) });
  complete(name, offered(() => known.map((parameter) => ({ text: parameter.name, hint: parameter.meaning }))));
  complete(value, offered(() => (named()?.values ?? []).map((item) => ({ text: written(item.value), hint: item.name }))));
  name.addEventListener("input", explain);
  explain();
}

// A value as a person writes it: JSON, a text without its quotes where no other value looks like it.
function written(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  return value === "" || read(value) === value ? value : JSON.stringify(value);
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// Returns whether a person has written a value without the name of its parameter.
function isNameless(row) {
  const value = field(row, "value");
  return value.dataset.dirty !== undefined && value.value !== "" && !field(row, "parameter").value.trim();
}

function parametersOf(place) {
  const rows = [...place.children].map((row) => [field(row, "parameter").value.trim(), field(row, "value").value]);
  return Object.fromEntries(rows.filter(([name, value]) => name && value !== "").map(([name, value]) => [name, read(value)]));
}

function textOf(text) {
  if (!text || typeof text === "string") return text ?? "";
  return text[keyIn(text)];
}

function keyIn(text) {
  return [language, "en", ...Object.keys(text)].find((name) => name in text);
}

// Returns a text with what a person has written; texts in other languages stay.
function withText(before, text) {
  if (!before || typeof before === "string") return text || undefined;
  const key = keyIn(before);
  const next = { ...before, [key]: text };
  if (!text) delete next[key];
  return Object.keys(next).length ? next : undefined;
}

// Returns what a person has written, as it is now: the form may soon show another element.
function givenBy(target) {
  const { form, name, type, checked } = target;
  const rows = form.querySelector("[data-list=parameters]");
  return {
    kind: form.dataset.kind,
    name,
    value: type === "number" ? Number(target.value) || undefined : target.value.trim(),
    checked,
    filled: rows?.filled,
    parameters: rows && parametersOf(rows),
    way: [...form.querySelectorAll(".way")].indexOf(target.closest(".way")),
  };
}

// Returns the change that this makes of an element: of what a person has written, and of nothing else.
function changeOf(given, at, recipe, offers) {
  const { kind, name, value } = given;
  if (!follow(at, recipe)) return GONE;
  const { key } = at;
  if (kind === "transition") return wayChange(given, at, recipe);
  if (kind === "recipe") return { change: "set_recipe", ...changed(given, recipe, ["interventions", "verdict", "title", "description"]) };
  const element = { action: actionAt, step: stepOf, branch: branchOf }[kind](recipe, key);
  if (!element) return GONE;
  if (name === "name") return kind === "action" ? { change: "rename_action", name: element.name, to: value } : { change: "rename_element", name: key, to: value };
  if (name === "initial") return { change: "set_initial", step: key };
  const next = changed(given, element);
  // A parameter whose value is still to come changes nothing yet.
  if (JSON.stringify(next) === JSON.stringify(changed({ name: "" }, element))) return null;
  if (kind === "action") return { change: "set_action", number: Number(key), action: withOffer(given, next, offers) };
  if (kind === "step") return { change: "set_step", name: key, step: next };
  const { lock, lock_timeout_seconds } = next;
  return { change: "set_branch", name: key, lock: lock ?? [], lock_timeout_seconds: lock_timeout_seconds ?? 0 };
}

// Returns the change that leaves an element as it is: what its author saw.
function seenBy(target, at, recipe) {
  const { kind } = target.form.dataset;
  if (kind === "recipe") return { change: "set_recipe", ...changed({ name: "" }, recipe, ["interventions", "verdict", "title", "description"]) };
  if (kind === "transition") {
    const way = transitionAt(recipe, at.numbers?.[[...target.form.querySelectorAll(".way")].indexOf(target.closest(".way"))]);
    return way && target.name !== "place" ? { change: "set_transition", number: 0, transition: way } : undefined;
  }
  const element = { action: actionAt, step: stepOf, branch: branchOf }[kind](recipe, at.key);
  if (!element || target.name === "initial") return undefined;
  if (target.name === "name") return { change: kind === "action" ? "rename_action" : "rename_element", name: element.name, to: element.name };
  if (kind === "action") return { change: "set_action", number: 0, action: element };
  if (kind === "step") return { change: "set_step", name: element.name, step: element };
  return { change: "set_branch", name: element.name, lock: element.lock ?? [], lock_timeout_seconds: element.lock_timeout_seconds ?? 0 };
}

// Returns what is selected afterwards. A selection keeps its identity: later changes of its element find the new name.
function after({ kind, name, value }, at, recipe) {
  if (name === "name" && kind !== "action") at.key = value;
  if (at.kind !== "way") return remember(at, recipe);
  const { source, target } = { ...at, [name]: value };
  return { kind: "transition", numbers: [numberOf(recipe, source, target)] };
}

function wayChange({ name, value, way }, at, recipe) {
  const given = { [name]: value || "always" };
  const number = at.kind === "way" ? numberOf(recipe, at.source, at.target) : at.numbers[way];
  // An implied way is written now, unless another person has written it.
  if (number < 0) return { change: "add_transition", transition: { source: at.source, target: at.target, condition: "always", ...given } };
  if (name === "place") return { change: "move_transition", number, place: Math.max(1, value || 1) };
  return { change: "set_transition", number, transition: { ...transitionAt(recipe, number), ...given } };
}

// Returns an element with what is given, of all its members or of some; what is empty is left out.
function changed(given, element, members = Object.keys({ ...element, [given.name]: 0 })) {
  const { name, value, checked } = given;
  const next = { ...element };
  if (name === "own_interventions") next.interventions = checked ? (element.interventions ?? []) : undefined;
  else if (name === "interventions") next.interventions = [...(element.interventions ?? []).filter((own) => own !== value), ...(checked ? [value] : [])];
  else if (["parameter", "value"].includes(name)) next.parameters = withParameters(given, element.parameters);
  else if (["title", "description"].includes(name)) next[name] = withText(element[name], value);
  else next[name] = name === "lock" ? value.split(",").map((part) => part.trim()).filter(Boolean) : value === "" ? undefined : value;
  const kept = [...members, "interventions", "parameters"].filter((member) => !["own_interventions", "parameter", "value"].includes(member));
  return Object.fromEntries(kept.filter((member) => next[member] !== undefined).map((member) => [member, next[member]]));
}

// Returns parameters with those that a person has written otherwise than they were filled in.
function withParameters({ filled, parameters }, own) {
  const next = { ...own };
  for (const name of Object.keys({ ...filled, ...parameters })) {
    if (JSON.stringify(parameters[name]) === JSON.stringify(filled[name])) continue;
    if (parameters[name] === undefined) delete next[name];
    else next[name] = parameters[name];
  }
  return own || Object.keys(next).length ? next : undefined;
}

// What the station knows of a type comes along, as long as the action has no parameters.
function withOffer({ name }, action, offers) {
  const offer = name === "type_id" && offers.find(({ type_id }) => type_id === action.type_id);
  if (!offer?.interaction || Object.keys(action.parameters ?? {}).length) return action;
  const { interaction, parameters, timeout_seconds } = offer;
  return { ...action, interaction, ...(Object.keys(parameters).length && { parameters }), ...(!action.timeout_seconds && timeout_seconds && { timeout_seconds }) };
}

function options(select, names) {
  const value = select.value;
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  select.value = value;
}

function list(place, rows) {
  place.replaceChildren(...rows);
}
