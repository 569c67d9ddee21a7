// Reads a badge at a panel: its reader types the code, key after key within milliseconds, and Enter.
// The keys of a reader reach no field: each key waits until it is known whether the next one follows as fast.
// A code that is no badge goes to the field that has the focus, so that no value is lost.

const GAP_MS = 45;
const LEAST = 6;

let waiting = []; // Keys that are held back.
let last = 0;
let timer = 0;

const isText = (element) => element?.matches?.("input:not([type=checkbox], [type=radio], [type=file]), textarea");

addEventListener(
  "keydown",
  (event) => {
    const { key, target } = event;
    // A field for a scanned code takes what is scanned.
    if (event.ctrlKey || event.altKey || event.metaKey || target.matches?.("[data-scan]")) return;
    const isFast = event.timeStamp - last < GAP_MS;
    last = event.timeStamp;
    if (key === "Enter") {
      const code = waiting.join("");
      if (isFast && code.length >= LEAST) {
        waiting = [];
        clearTimeout(timer);
        swallow(event);
        read(code, isText(document.activeElement) ? document.activeElement : null);
      } else giveBack();
      return;
    }
    if (key.length !== 1) {
      giveBack();
      return;
    }
    if (!isFast) giveBack();
    // Space on a button is not the begin of a code.
    if (!waiting.length && key === " " && !isText(document.activeElement)) return;
    waiting.push(key);
    swallow(event);
    clearTimeout(timer);
    timer = setTimeout(giveBack, GAP_MS);
  },
  true,
);

function swallow(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

// Without Enter it is no badge: the field gets the keys, also those of a scanner that ends codes otherwise.
function giveBack() {
  clearTimeout(timer);
  const text = waiting.join("");
  waiting = [];
  const field = document.activeElement;
  if (text && isText(field)) write(field, text);
}

function write(field, text) {
  if (field.readOnly) return;
  if (field.maxLength >= 0 && field.value.length + text.length > field.maxLength) return;
  const { selectionStart: from, selectionEnd: to } = field;
  if (from === null) field.value += text;
  else field.setRangeText(text, from, to, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// What has been typed for a prompt outlives the change of the user.
const TYPED = "typed for prompts";
const answers = () => [...document.querySelectorAll("form[data-answer]")];

function show(isLogin, code) {
  const typed = answers().map((form) => [
    form.dataset.answer,
    [...new FormData(form)].filter(([, value]) => value !== code),
  ]);
  sessionStorage.setItem(TYPED, JSON.stringify(typed));
  if (isLogin) location.assign("/");
  else location.reload();
}

for (const [address, values] of JSON.parse(sessionStorage.getItem(TYPED) ?? "[]")) {
  const form = answers().find((other) => other.dataset.answer === address);
  for (const [name, value] of form ? values : []) form.elements[name].value = value;
}
sessionStorage.removeItem(TYPED);

// The badge of a user is set in a field that hides it.
const takesCodes = (field) => field && (field.type !== "password" || field.name === "badge") && !field.closest(".login, .pin-form");

// A signature that is asked for takes the badge; else its owner logs in. A code of nobody is the value of a field, also
// one that the gateway does not check now.
async function read(code, field = null) {
  const signing = document.querySelector("dialog#sign[open]");
  if (signing) {
    signing.dispatchEvent(new CustomEvent("badge", { detail: code }));
    return;
  }
  const notice = document.getElementById("notice");
  try {
    const answer = await fetch("/api/v1/session/panel", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ badge: code }),
    });
    if (answer.ok) {
      show(location.pathname === "/login", code);
      return;
    }
    const problem = await answer.json();
    if (problem.kind === "unknown_badge" && takesCodes(field)) {
      write(field, code);
      if (field.type === "search") field.form?.requestSubmit();
      return;
    }
    if (problem.kind === "login_locked" && takesCodes(field)) write(field, code);
    notice.textContent = `${problem.reason} ${problem.advice}`;
  } catch {
    if (takesCodes(field)) write(field, code);
    notice.textContent = document.getElementById("offline").textContent;
  }
  notice.hidden = false;
}

// The gateway has refused an answer with a badge in a field for a scanned code: the badge is taken as what it is.
addEventListener("badgetyped", async (event) => {
  for (const scanned of event.detail.querySelectorAll("[data-scan]")) {
    if (scanned.value) await read(scanned.value);
  }
});
