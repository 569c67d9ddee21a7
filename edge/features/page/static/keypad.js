// Keys on the screen of a panel: figures for numbers, letters for texts. A keyboard that is there works as ever.

const panel = matchMedia(document.getElementById("panel").media);
const LETTERS = {
  en: ["qwertyuiop", "asdfghjkl", "zxcvbnm"],
  de: ["qwertzuiopü", "asdfghjklöä", "yxcvbnmß"],
  fr: ["azertyuiop", "qsdfghjklm", "wxcvbné"],
};
const SIGNS = ["1234567890", "-/:;()@#+", ".,_?!%&"];
// The signs of conditions, with shift.
const MORE_SIGNS = ["<>=!*+-", "()[]{}", "._,'\""];
const SCROLL_MS = 250;
const CLICK_MS = 700;
const TYPED = "textarea, input:not([type=checkbox], [type=radio], [type=file], [type=hidden], [type=submit])";

let field = null; // The field that the keys write to.
let text = ""; // Its text; a number that is not whole yet, as "1.", is not in the field.
let keys = null;
let upper = false;
let signs = false;
let writing = false;
let byKeyboard = true;
let closedAt = -Infinity;

// Tells which keys a field needs; the keyboard of the system stays closed.
function kindOf(input) {
  input.dataset.mode ??= input.type === "number" ? "decimal" : input.inputMode;
  input.inputMode = "none";
  return ["decimal", "numeric"].includes(input.dataset.mode) ? input.dataset.mode : "text";
}

function open(input) {
  // A change of the page moves the focus away and back: the keys stay as they are.
  if (keys?.isConnected && input === field) return;
  field = input;
  text = input.value;
  signs = upper = false;
  const place = input.closest("form")?.querySelector("[data-keys]");
  close();
  keys = document.getElementById("keypad").content.firstElementChild.cloneNode(true);
  keys.classList.toggle("sheet", !place);
  keys.addEventListener("pointerdown", press);
  build();
  // What is outside of an open dialog cannot be touched.
  (place ?? input.closest("dialog") ?? document.body).append(keys);
  // After the click: the field must not move away from under the finger.
  if (!place) setTimeout(() => input.scrollIntoView({ block: "start" }), SCROLL_MS);
}

function close() {
  keys?.remove();
  keys = null;
}

// The click that follows belongs to the key: what was under the keys must not take it.
function hide() {
  close();
  closedAt = performance.now();
}

addEventListener(
  "click",
  (event) => {
    const isOfKey = event.isTrusted && event.detail > 0 && performance.now() - closedAt < CLICK_MS;
    closedAt = -Infinity;
    if (!isOfKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

function build() {
  const kind = kindOf(field);
  keys.classList.toggle("numbers", kind !== "text");
  const said = document.createElement("div");
  said.className = "said row";
  const label = document.createElement("span");
  label.textContent = (field.closest("label")?.textContent ?? "").trim();
  said.append(label, document.createElement("output"));
  keys.replaceChildren(said, ...(kind === "text" ? letters() : figures(kind)));
  show();
}

function figures(kind) {
  const last = kind === "decimal" ? ["-", "0", "."] : ["0"];
  return [rowOf(["7", "8", "9", "back", "4", "5", "6", "clear", "1", "2", "3", "done", ...last])];
}

function letters() {
  const rows = signs ? (upper ? MORE_SIGNS : SIGNS) : (LETTERS[document.documentElement.lang] ?? LETTERS.en);
  const [first, second, third] = rows.map((row) => [...(upper ? row.toUpperCase() : row)]);
  return [rowOf(first), rowOf(second), rowOf(["shift", ...third, "back"]), rowOf(["hide", "signs", "space", ".", "-", "done"])];
}

const FACES = { back: "⌫", done: "✓", hide: "▾", shift: "⇧", space: " ", clear: "C", "-": "−" };

function rowOf(names) {
  const row = document.createElement("div");
  row.className = "row";
  for (const name of names) {
    const key = document.createElement("button");
    key.type = "button";
    key.tabIndex = -1;
    key.dataset.key = name;
    key.textContent = name === "signs" ? (signs ? "abc" : "123") : (FACES[name] ?? name);
    if (keys.dataset[name]) key.setAttribute("aria-label", keys.dataset[name]);
    if (name === "done") key.classList.add("primary", "wide");
    if (name === "space") key.classList.add("space");
    row.append(key);
  }
  return row;
}

function press(event) {
  // The focus stays in the field.
  event.preventDefault();
  const name = event.target.closest("button")?.dataset.key;
  if (!name) return;
  switch (name) {
    case "back": return write(text.slice(0, -1));
    case "clear": return write("");
    case "space": return write(`${text} `);
    case "hide": return hide();
    case "done": return done();
    case "shift":
    case "signs":
      if (name === "shift") upper = !upper;
      else signs = !signs;
      return build();
    default:
      write(text + name);
      if (upper) {
        upper = false;
        build();
      }
  }
}

function write(next) {
  if (field.maxLength >= 0 && next.length > field.maxLength) return;
  text = next;
  writing = true;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  writing = false;
  show();
}

function show() {
  const output = keys.querySelector("output");
  output.textContent = field.type === "password" ? "•".repeat(text.length) : text;
}

// Goes to the next empty field of the form; after the last one, and after a search, the form is sent.
function done() {
  const fields = [...(field.form?.querySelectorAll(TYPED) ?? [])].filter((other) => other.checkVisibility());
  const next = field.type !== "search" && fields.slice(fields.indexOf(field) + 1).find((other) => !other.value);
  if (next) {
    next.focus();
    return;
  }
  const { form } = field;
  hide();
  // A button that was named holds for what cannot be undone: it is pressed, not this key.
  const button = form?.querySelector("button:not([type=button])");
  if (!field.closest("dialog") || form.querySelector("[data-keys]")) form?.requestSubmit(button);
  else button?.focus();
}

addEventListener("keydown", () => (byKeyboard = true), true);
addEventListener(
  "pointerdown",
  (event) => {
    byKeyboard = false;
    const isOutside = !keys?.contains(event.target) && !event.target.closest?.("label") && event.target !== field;
    if (keys?.classList.contains("sheet") && isOutside) close();
  },
  true,
);
addEventListener("focusin", (event) => {
  if (!panel.matches) return;
  // Where the keys have their place, they write to the field of figures, whatever has the focus.
  const figured = event.target.closest?.("form:has([data-keys])")?.querySelector("[inputmode=numeric], [data-mode=numeric]");
  if (figured) {
    if (!keys || field !== figured) open(figured);
    return;
  }
  if (event.target.matches?.(TYPED)) {
    if (!byKeyboard) open(event.target);
  } else if (!keys?.contains(event.target)) close();
});
// A touch of the field opens the keys again that were hidden.
addEventListener("click", (event) => {
  if (panel.matches && !keys && !byKeyboard && event.target.matches?.(TYPED)) open(event.target);
});
addEventListener("input", (event) => {
  if (writing || event.target !== field || !keys) return;
  text = field.value;
  show();
});
// Where the keys have their place they are there from the beginning.
const first = document.querySelector("main form:has([data-keys]) input[inputmode=numeric]");
if (first) open(first);
