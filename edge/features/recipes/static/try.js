// Tries a recipe by hand: each answer is sent with those before, and the gateway returns what happens up to the next question.

import { dataOf, missingIn, moreRows, rowsOf } from "./fields.js";
import { show } from "./view.js";
import { worded } from "./words.js";

const view = document.getElementById("try");
const part = (id) => document.getElementById(id);
const notice = part("notice");
const texts = view.dataset;
const ends = JSON.parse(texts.ends);
const acts = JSON.parse(texts.acts);
// Answers and acts of persons, in the order in which they were given.
let decisions = [];
let parameters = JSON.parse(texts.parameters);
let trial = null;
let position = 0;
let drawn = 0;
const verdicts = JSON.parse(texts.verdicts);
// What was answered stays while a person looks at another page about the recipe.
const WITH_RESULT = new Set(["skip", "resolve done"]);
const KEPT = `try ${texts.address}`;

function report(text) {
  notice.textContent = text;
  notice.hidden = !text;
  if (text) notice.scrollIntoView({ block: "center" });
}

async function request(address, body) {
  report("");
  const sent = body && {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
    body: JSON.stringify(body),
  };
  const answer = await fetch(address, sent).catch(() => null);
  if (!answer) {
    report(part("offline").textContent);
    return null;
  }
  const found = await answer.json().catch(() => ({ reason: answer.statusText, advice: "" }));
  if (answer.ok) return found;
  report(`${found.reason} ${found.advice}`);
  return null;
}

function item(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const seconds = (at) => `${Number(at.toFixed(3))} s`;

// Sends the decisions; returns whether the gateway has taken them.
async function play(next) {
  const of = (kind) => next.flatMap((decision) => decision[kind] ?? []);
  const found = await request(`${texts.address}/try`, { replies: of("reply"), interventions: of("act"), parameters });
  if (!found) return false;
  decisions = next;
  sessionStorage.setItem(KEPT, JSON.stringify({ decisions, parameters }));
  if (!trial) showOrder(found);
  trial = found;
  showFrames();
  go(trial.frames.length - 1);
  return true;
}

function showFrames() {
  part("frames").replaceChildren(
    ...trial.frames.map((frame, number) => {
      const button = item("button", { type: "button" }, item("span", { className: "detail", textContent: seconds(frame.at) }), frame.text);
      button.addEventListener("click", () => go(number));
      return item("li", { className: `frame-${frame.kind}` }, button);
    }),
  );
  part("truncated").hidden = !trial.truncated;
  part("truncated").textContent = worded(texts.truncated, { number: trial.frames.length });
  part("undo").disabled = !decisions.length;
}

function go(number) {
  position = Math.max(0, Math.min(number, trial.frames.length - 1));
  const frame = trial.frames[position];
  const isLast = position === trial.frames.length - 1;
  for (const [place, button] of part("frames").querySelectorAll("button").entries()) {
    if (place === position) {
      button.setAttribute("aria-current", "step");
      const box = part("frames");
      box.scrollTop = button.parentElement.offsetTop - box.offsetTop - box.clientHeight / 2;
    } else {
      button.removeAttribute("aria-current");
    }
  }
  part("earlier").disabled = position === 0;
  part("later").disabled = isLast;
  const active = frame?.active ?? [];
  part("now-title").textContent = worded(texts.at, { at: seconds(frame?.at ?? 0), steps: active.join(", ") || "–" });
  showQuestions(isLast);
  draw(active);
}

function showQuestions(isLast) {
  const isOver = isLast && !trial.questions.length;
  part("questions").replaceChildren(...(isLast ? [...trial.questions.map(question), ...persons()] : []));
  part("planned").hidden = !isLast || !trial.planned.length;
  part("planned").replaceChildren(...trial.planned.map((text) => item("li", { textContent: text })));
  part("over").hidden = !isOver;
  part("over").className = `banner ${levelOf(trial)}`;
  const verdict = trial.verdict ? ` (${verdicts[trial.verdict] ?? trial.verdict})` : "";
  part("over").textContent = `${worded(texts.over, { end: `${ends[trial.end] ?? trial.end}${verdict}` })}${trial.error ? `: ${trial.error}` : ""}`;
  part("waiting").hidden = !isOver || !trial.waiting.length;
  part("waiting").replaceChildren(...trial.waiting.map((text) => item("li", { textContent: text })));
  part("keep").hidden = !isOver;
  part("expects").textContent = `${ends[trial.end] ?? trial.end}${verdict} · ${trial.steps.join(" → ")}`;
}

// Green is a job that is completed with an OK, or without a verdict.
function levelOf({ end, verdict }) {
  if (end === "running") return "warn";
  return end === "completed" && ["", "ok"].includes(verdict) ? "good" : "bad";
}

// Returns whether each name that was written has a value; else says which field is empty.
function isWhole(place) {
  const missing = missingIn(place);
  if (!missing) return true;
  report(missing.name === "member" ? texts.noName : texts.noValue);
  missing.focus({ preventScroll: true });
  return false;
}

function question(asked) {
  const card = part(asked.kind).content.cloneNode(true).firstElementChild;
  card.querySelector("[data-title]").textContent = asked.attempt > 1 ? `${asked.action} (${texts.attempt} ${asked.attempt})` : asked.action;
  const limit = asked.timeout_seconds ? ` · ${worded(texts.limit, { seconds: asked.timeout_seconds })}` : "";
  card.querySelector("[data-about]").textContent = `${asked.type_id}${asked.step ? ` · ${asked.step}` : ""}${limit}`;
  card.querySelector("[data-fields]").replaceChildren(...rowsOf(asked.fields, texts));
  moreRows(card.querySelector("[data-more]"), part("more"));
  if (!asked.timeout_seconds) card.querySelector("[data-result=late]")?.remove();
  card.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-result]");
    if (button) reply(asked, card, button.dataset.result);
  });
  return card;
}

async function reply(asked, card, result) {
  const { kind, type_id, nth, step, action, at, timeout_seconds } = asked;
  const given = { kind, type_id, nth, step, action, at, timeout_seconds, result };
  given.after = Number(card.querySelector("[name=after]").value || 0);
  if (["ok", "late"].includes(result)) {
    if (!isWhole(card)) return;
    given.data = dataOf(card);
  }
  if (await play([...decisions, { reply: given }])) focusFirst();
}

function focusFirst() {
  part("questions").querySelector("button, summary")?.focus({ preventScroll: true });
}

// What a person could do now: open where nothing else is asked.
function persons() {
  if (!trial.interventions.length) return [];
  const card = part("person").content.cloneNode(true).firstElementChild;
  card.open = !trial.questions.length;
  card.querySelector("[data-acts]").replaceChildren(
    ...trial.interventions.map((act) => {
      const subject = act.target ? `${act.step} → ${act.target}` : [act.action, act.step].filter(Boolean).join(" · ");
      const button = item("button", { type: "button", textContent: [acts[act.kind], subject].filter(Boolean).join(": ") });
      button.dataset.act = act.kind;
      const box = item("div", { className: "act" }, button);
      if (WITH_RESULT.has(act.kind)) box.append(...resultFields(trial.results[act.action] ?? []));
      button.addEventListener("click", () => isWhole(box) && intervene({ ...act, data: dataOf(box) }, Number(card.querySelector("[name=after]").value)));
      return box;
    }),
  );
  return [card];
}

// The result that a person brings along: what conditions ask for, and further members.
function resultFields(fields) {
  const more = item("div", {});
  moreRows(more, part("more"));
  return [item("div", { className: "fields" }, ...rowsOf(fields, texts)), more];
}

async function intervene(act, after) {
  if (await play([...decisions, { act: { ...act, after } }])) focusFirst();
}

// Shows the parameters of the order: those of the Work Master, and those that conditions ask for.
function showOrder({ parameters: asked, members }) {
  const names = new Set(asked.map(({ name }) => name));
  const own = Object.keys(parameters).filter((name) => !names.has(name));
  part("members").replaceChildren(...members.map((name) => new Option(name)));
  part("order").querySelector("[data-fields]").replaceChildren(...rowsOf([...own.map((name) => ({ name, kind: "", values: [] })), ...asked], texts, parameters));
  moreRows(part("order").querySelector("[data-more]"), part("more"));
}

async function order(event) {
  event.preventDefault();
  if (!isWhole(part("order-form"))) return;
  parameters = dataOf(part("order-form")) ?? {};
  await play([]);
}

async function draw(active) {
  const number = ++drawn;
  const answer = await fetch(`${texts.address}/active.svg?steps=${encodeURIComponent(JSON.stringify(active))}`).catch(() => null);
  if (!answer?.ok || number !== drawn) return;
  await show(part("chart"), await answer.text(), /<rect class="[^"]*\bactive\b[^"]*" x="([\d.]+)" y="([\d.]+)"/);
}

async function keep(event) {
  event.preventDefault();
  const test = { id: event.target.elements.id.value.trim(), work_master: texts.master, end: trial.end, steps: trial.steps };
  if (trial.verdict) test.verdict = trial.verdict;
  if (Object.keys(trial.script).length) test.script = trial.script;
  const found = await request("/api/v1/recipe-tests", test);
  if (!found) return;
  event.target.reset();
  part("keep").open = false;
  showTests(found.tests);
  await runTests();
}

function showTests(tests) {
  part("no-tests").hidden = tests.length > 0;
  part("tests").replaceChildren(
    ...tests.map((test) => {
      const text = item("span", { className: "detail", textContent: test.id });
      const drop = item("button", { type: "button", textContent: part("tests").dataset.drop });
      drop.dataset.drop = test.id;
      const row = item("li", {}, sign("–"), text, drop);
      row.dataset.test = test.id;
      return row;
    }),
  );
}

function sign(text) {
  const made = item("span", { className: "sign-of", textContent: text });
  made.setAttribute("aria-hidden", "true");
  return made;
}

async function runTests() {
  part("run-tests").disabled = true;
  part("run-tests").setAttribute("aria-busy", "true");
  const found = await request(`${texts.address}/tests`);
  part("run-tests").disabled = false;
  part("run-tests").removeAttribute("aria-busy");
  if (!found) return;
  for (const result of found.results) {
    const row = [...part("tests").children].find((candidate) => candidate.dataset.test === result.id);
    if (!row) continue;
    const passed = !result.reasons.length;
    row.className = passed ? "yes" : "no";
    row.querySelector(".sign-of").textContent = passed ? "✓" : "✗";
    row.querySelector(".detail").replaceChildren(
      `${result.id}: ${passed ? texts.passed : texts.failed}`,
      ...result.reasons.flatMap((reason) => [item("br", {}), item("small", { textContent: reason })]),
    );
  }
  const failed = found.results.filter((result) => result.reasons.length).length;
  const said = part("tests-said");
  said.hidden = false;
  said.className = `banner ${!found.results.length ? "warn" : failed ? "bad" : "good"}`;
  said.textContent = !found.results.length ? texts.none : failed ? worded(texts.bad, { failed, all: found.results.length }) : worded(texts.good, { all: found.results.length });
}

async function dropTest(id) {
  if (!(await request("/api/v1/recipe-tests/delete", { id }))) return;
  const row = [...part("tests").children].find((candidate) => candidate.dataset.test === id);
  row?.remove();
  part("no-tests").hidden = part("tests").children.length > 0;
}

part("earlier").addEventListener("click", () => go(position - 1));
part("later").addEventListener("click", () => go(position + 1));
part("undo").addEventListener("click", () => play(decisions.slice(0, -1)));
part("restart").addEventListener("click", () => play([]));
part("order-form").addEventListener("submit", order);
part("test-form").addEventListener("submit", keep);
part("run-tests").addEventListener("click", runTests);
part("tests").addEventListener("click", ({ target }) => target.dataset.drop !== undefined && target.closest("button") && dropTest(target.dataset.drop));

// Begins with what was answered before; a recipe that has changed may ask otherwise.
async function begin() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  const own = parameters;
  if (kept) parameters = kept.parameters;
  if (kept?.decisions.length && (await play(kept.decisions))) return;
  if (kept && trial === null) parameters = kept.decisions.length ? own : kept.parameters;
  await play([]);
}

begin();
