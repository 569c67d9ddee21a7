// Fields for values that conditions ask for: a person chooses or types them, and the page makes the JSON.

import { worded } from "./words.js";

// Returns a label and a field for each value, filled with those that are given by name.
export function rowsOf(fields, texts, given = {}) {
  return fields.flatMap((field, number) => {
    const input = field.kind === "flag" ? choice(texts) : entry(field, texts);
    input.dataset.value = field.name;
    input.dataset.kind = field.kind;
    input.setAttribute("aria-label", field.name);
    const value = field.name.split(".").reduce((found, name) => found?.[name], given);
    if (value !== undefined) input.value = typeof value === "string" ? value : JSON.stringify(value);
    const label = document.createElement("span");
    label.textContent = field.name;
    label.setAttribute("aria-hidden", "true");
    if (!field.values.length || field.kind === "flag") return [label, input];
    const list = document.createElement("datalist");
    list.id = `values-${field.name}-${number}-${crypto.randomUUID()}`;
    list.replaceChildren(...field.values.map((item) => new Option(String(item))));
    input.setAttribute("list", list.id);
    const box = document.createElement("span");
    box.append(input, list);
    return [label, box];
  });
}

function choice(texts) {
  const select = document.createElement("select");
  select.replaceChildren(new Option("–", ""), new Option(texts.yes, "true"), new Option(texts.no, "false"));
  return select;
}

function entry(field, texts) {
  const input = Object.assign(document.createElement("input"), { autocomplete: "off", spellcheck: false });
  if (field.kind === "number") Object.assign(input, { type: "number", step: "any", inputMode: "decimal" });
  if (field.values.length) input.placeholder = worded(texts.from, { value: field.values[0] });
  return input;
}

// Shows an empty row for a further name and its value; the next one comes as soon as it has a name.
export function moreRows(place, template) {
  const add = () => place.append(template.content.firstElementChild.cloneNode(true));
  place.replaceChildren();
  add();
  place.addEventListener("input", ({ target }) => target.name === "member" && target.closest(".pair") === place.lastElementChild && target.value && add());
}

// Returns the field that is still empty beside one of its row with a name or a value; nothing where all are whole.
export function missingIn(place) {
  for (const row of place.querySelectorAll(".pair")) {
    const [name, value] = ["member", "value"].map((field) => row.querySelector(`[name=${field}]`));
    if (!name.value.trim() !== (value.value === "")) return name.value.trim() ? value : name;
  }
  return null;
}

// Returns the values that were entered, nested as their names say; nothing where there are none.
export function dataOf(place) {
  const data = {};
  for (const input of place.querySelectorAll("[data-value]")) if (input.value !== "") put(data, input.dataset.value, valueOf(input));
  for (const row of place.querySelectorAll(".pair")) {
    const name = row.querySelector("[name=member]").value.trim();
    if (name) put(data, name, read(row.querySelector("[name=value]").value));
  }
  return Object.keys(data).length ? data : undefined;
}

function valueOf({ value, dataset }) {
  if (dataset.kind === "flag") return value === "true";
  if (dataset.kind === "number") return Number(value);
  return dataset.kind === "text" ? value : read(value);
}

function put(data, path, value) {
  const names = path.split(".");
  const last = names.pop();
  let place = data;
  for (const name of names) place = place[name] = typeof place[name] === "object" && place[name] ? place[name] : {};
  place[last] = value;
}

// Returns a value as it was written: a number, true, false, a list, else the text.
function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
