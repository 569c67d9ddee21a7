// The field of a condition: names are offered, faults are shown while a person types, and what past jobs had.

import { complete, fitting } from "./complete.js";

const CHECK_MS = 200;
const VALUES_MS = 500;
const WORDS = ["always", "and", "or", "not", "true", "false"];
const NAME = /[A-Za-z_][\w.\[\]]*$/;

// `names()` returns the names of the draft, `step()` the step that the condition leaves.
export function condition(field, { draft, names, step, texts }) {
  const fault = document.createElement("p");
  fault.className = "field-fault";
  fault.setAttribute("role", "alert");
  fault.id = `${field.id || field.name}-fault-${Math.random().toString(36).slice(2, 8)}`;
  const values = document.createElement("div");
  values.className = "values";
  field.setAttribute("aria-describedby", fault.id);
  complete(field, (text, caret) => offered(text.slice(0, caret), names()));
  field.parentElement.after(fault, values);
  let waiting = 0;
  let last = 0;

  async function check() {
    const text = field.value.trim();
    const place = ++last;
    // Empty is `always`: nothing to ask.
    const answer = text ? await draft.read("/expression", { condition: text }) : { fault: "" };
    if (place !== last || !answer) return;
    fault.textContent = answer.fault;
    field.setAttribute("aria-invalid", String(Boolean(answer.fault)));
    values.replaceChildren();
    if (!text || answer.fault || !step()) return;
    await new Promise((resolve) => setTimeout(resolve, VALUES_MS));
    if (place !== last || !field.isConnected) return;
    const past = await draft.read("/condition", { condition: text, step: step() });
    if (place === last && past) values.replaceChildren(...shown(past.values, texts));
  }

  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, CHECK_MS);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.defaultPrevented && field.tagName === "TEXTAREA") {
      event.preventDefault();
      field.form.requestSubmit(field.form.querySelector("button:not([type=button])"));
    }
  });
  return { check };
}

function offered(before, names) {
  const typed = NAME.exec(before)?.[0] ?? "";
  const items = [...names.map(({ name, seen }) => ({ text: name, hint: seen.join(", ") })), ...(typed ? WORDS.map((text) => ({ text })) : [])];
  return { from: before.length - typed.length, items: fitting(items, typed) };
}

// The value in each of the last jobs: the newest first.
function shown(past, texts) {
  const head = document.createElement("p");
  head.className = "detail";
  head.textContent = past.length ? texts.in_past_jobs : texts.no_past_jobs;
  const list = document.createElement("ul");
  for (const { job_order_id, value, unmet } of past) {
    const item = document.createElement("li");
    const mark = { true: "good", false: "bad" }[value] ?? "";
    const chip = document.createElement("span");
    chip.className = `mark ${mark}`;
    chip.textContent = value ? (texts[`value_${value}`] ?? value) : texts.never_asked;
    const why = Object.entries(unmet).map(([part, because]) => `${part} (${because})`).join(", ");
    item.append(chip, ` ${job_order_id}${why ? `: ${why}` : ""}`);
    list.append(item);
  }
  return [head, list];
}
