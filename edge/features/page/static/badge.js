// Reads a badge at a panel: its reader types the code, key after key within milliseconds, and Enter.
// The keys of a reader reach no field: each key waits until it is known whether the next one follows as fast.

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
        read(code);
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

// A person has typed: the field gets the keys. What came as fast as of a reader, but has no end, reaches nobody.
function giveBack() {
  clearTimeout(timer);
  const text = waiting.join("");
  waiting = [];
  const field = document.activeElement;
  if (!text || text.length >= LEAST || !isText(field) || field.readOnly) return;
  if (field.maxLength >= 0 && field.value.length + text.length > field.maxLength) return;
  const { selectionStart: from, selectionEnd: to } = field;
  if (from === null) field.value += text;
  else field.setRangeText(text, from, to, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// A signature that is asked for takes the badge; else its owner logs in.
async function read(code) {
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
      if (location.pathname === "/login") location.assign("/");
      else location.reload();
      return;
    }
    const problem = await answer.json();
    notice.textContent = `${problem.reason} ${problem.advice}`;
  } catch {
    notice.textContent = document.getElementById("offline").textContent;
  }
  notice.hidden = false;
}
