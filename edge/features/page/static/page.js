// Keeps a page of the gateway up to date and sends what a person asks for. The server renders; nothing is built here.

const root = document.documentElement;
root.dataset.js = "";
const subjects = new Set(JSON.parse(document.body.dataset.subjects));
const LEAST_MS = 150;
const LEAST_PICTURE_MS = 500;
const PICTURE_MS_OF_PAGE = 100;
const MOVED_MS = 500;
const LONGEST_MS = 10_000;

let reading = false;
let again = false;
let last = 0;
let drawn = 0;
let waiting = 0;
let pages = 1;
let pressed = false;
let missed = false;
// A control leads to another page: this one may be about what it has just ended.
let leaving = false;
addEventListener("pageshow", () => { leaving = false; });

// Reads this page again and replaces the parts that differ; what has the focus keeps it.
async function refresh() {
  if (pressed) {
    // What is under a finger stays there until it is lifted.
    missed = true;
    return;
  }
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const wait = LEAST_MS - (Date.now() - last);
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    last = Date.now();
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, signal: AbortSignal.timeout(LONGEST_MS) });
    if (answer.status < 500) say("heard");
    else say("lost", new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-waits]")?.dataset.waits);
    if (leaving) return;
    if (answer.redirected) location.assign(answer.url);
    if (!answer.ok) {
      // What the page is about is gone. A page on which a person writes stays, and says so.
      if (answer.status === 404 && dispatchEvent(new Event("missing", { cancelable: true }))) location.assign("/jobs");
      return;
    }
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    localize(found);
    showTitle(found);
    if (partsOf(found).join() !== partsOf(document).join()) {
      location.reload();
      return;
    }
    if (pressed) {
      missed = true;
      return;
    }
    const before = places();
    replaceParts(found);
    noteMoved(before);
    redrawSoon();
  } catch {
    // The stream of changes reports that the gateway is away.
  } finally {
    reading = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

function partsOf(page) {
  return [...page.querySelectorAll("[data-part]")].map((part) => part.dataset.part);
}

function replaceParts(found) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const fresh = found.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh.outerHTML === part.outerHTML || part.querySelector("details[open]:not([data-key])")) continue;
    for (const open of part.querySelectorAll("details[open]")) {
      fresh.querySelector(`details[data-key="${CSS.escape(open.dataset.key)}"]`)?.setAttribute("open", "");
    }
    const active = document.activeElement;
    const focused = part.contains(active) ? keyOf(active) : "";
    // What a person has typed stays, and so does the field in which they type.
    for (const form of part.querySelectorAll("form[data-answer]")) {
      const same = [...fresh.querySelectorAll("form[data-answer]")].find((other) => other.dataset.answer === form.dataset.answer);
      same?.replaceWith(form);
    }
    part.replaceWith(fresh);
    if (fresh.contains(active)) active.focus();
    else if (focused) [...fresh.querySelectorAll("a, button")].find((control) => keyOf(control) === focused)?.focus();
  }
}

// A control that has just come under a finger is not what the finger meant: for a moment a tap on it does nothing.
const moved = new Map();
let settling = 0;
const CONTROL = "a, button, summary";

function nameOf(control) {
  const about = keyOf(control) || (control.form?.dataset.answer ?? control.parentElement.dataset.key ?? "");
  const part = control.closest("[data-part]")?.dataset.part ?? "";
  return `${part} ${about} ${control.value ?? ""} ${control.textContent}`;
}

function places() {
  return new Map([...document.querySelectorAll(`main :is(${CONTROL})`)].map((control) => [nameOf(control), control.getBoundingClientRect()]));
}

function noteMoved(before) {
  const now = performance.now();
  for (const [name, until] of moved) if (until < now) moved.delete(name);
  for (const [name, box] of places()) {
    const old = before.get(name);
    const isThere = old && Math.abs(old.x - box.x) < box.width / 2 && Math.abs(old.y - box.y) < box.height / 2;
    if (!isThere) moved.set(name, now + MOVED_MS);
  }
  root.toggleAttribute("data-moved", moved.size > 0);
  clearTimeout(settling);
  settling = setTimeout(() => root.removeAttribute("data-moved"), MOVED_MS);
}

// Whether a control stays where a person has seen it.
function isSettled(control) {
  return !control || !(moved.get(nameOf(control)) > performance.now());
}

let refused = false;

addEventListener(
  "pointerdown",
  (event) => {
    refused = !isSettled(event.target.closest?.(CONTROL));
    if (refused) event.stopImmediatePropagation();
  },
  true,
);
addEventListener(
  "click",
  (event) => {
    // Keys and screen readers name a control, not a place.
    if (!refused || event.detail === 0) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

// Shows instants in the zone of the browser.
const timeOfDay = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const clock = new Intl.DateTimeFormat(root.lang, timeOfDay);
const ofThisYear = new Intl.DateTimeFormat(root.lang, { month: "short", day: "numeric", ...timeOfDay });
const ofAnyYear = new Intl.DateTimeFormat(root.lang, { year: "numeric", month: "short", day: "numeric", ...timeOfDay });
const zone = new Intl.DateTimeFormat(root.lang, { timeZoneName: "short" });
const zoneName = (at) => zone.formatToParts(at).find((part) => part.type === "timeZoneName").value;

function localize(page) {
  for (const time of page.querySelectorAll("time[data-at]")) {
    const at = new Date(time.dateTime);
    const day = at.getFullYear() === new Date().getFullYear() ? ofThisYear : ofAnyYear;
    // Columns of tables are narrow: the foot of the page names the zone, too.
    const withZone = time.closest("td") ? day.format(at) : `${day.format(at)} ${zoneName(at)}`;
    time.textContent = time.dataset.at === "clock" ? clock.format(at) : withZone;
    time.title = `${ofAnyYear.format(at)} ${zoneName(at)}`;
  }
  const named = page.getElementById("zone");
  if (named) named.textContent = `${Intl.DateTimeFormat().resolvedOptions().timeZone} (${zoneName(new Date())})`;
}

// Counts on what waits, second by second, from what the server has said; down to the end where it has one.
function tick() {
  for (const span of document.querySelectorAll(".tick:not([data-still])")) {
    span.since ??= performance.now();
    const passed = Math.floor(Number(span.dataset.from) + (performance.now() - span.since) / 1000);
    const seconds = span.dataset.until ? Math.max(0, Math.floor(Number(span.dataset.until)) - passed) : passed;
    span.textContent = seconds < 100 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  }
}

// Shows how much needs a person: in the navigation, in the title and in the icon of the tab.
function showTitle(page) {
  document.title = page.title;
  document.querySelector("link[rel=icon]").href = page.querySelector("link[rel=icon]").getAttribute("href");
  for (const count of document.querySelectorAll("[data-count]")) {
    const fresh = page.querySelector(`[data-count="${count.dataset.count}"]`);
    if (!fresh) continue;
    count.textContent = fresh.textContent;
    count.className = fresh.className;
    count.hidden = fresh.hidden;
  }
}

let counting = 0;

// Pages that do not show what has changed read the counts only, at most once a second.
function countSoon() {
  counting ||= setTimeout(async () => {
    counting = 0;
    const answer = await fetch("/api/v1/attention", { headers: { "X-Live": "1" } }).catch(() => null);
    if (!answer?.ok) return;
    const attention = await answer.json();
    for (const count of document.querySelectorAll("[data-count]")) {
      const number = attention[count.dataset.count];
      count.textContent = number;
      count.className = `count ${attention[`${count.dataset.count}_level`]}`;
      count.hidden = !number;
    }
    const all = attention.station + attention.alarms;
    document.title = `${all ? `(${all}) ` : ""}${document.title.replace(/^\(\d+\) /, "")}`;
    document.querySelector("link[rel=icon]").href = `/static/icon${attention.level === "good" ? "" : `-${attention.level}`}.svg`;
  }, 1000);
}

function keyOf(element) {
  return (element.dataset.post && element.dataset.post + (element.dataset.yes ?? "")) || (element.dataset.send && element.dataset.send + element.dataset.given) || element.dataset.shelve || (element.dataset.resolve && element.dataset.resolve + element.dataset.action + (element.dataset.resolution ?? "")) || element.dataset.given || element.getAttribute("href") || "";
}

// Draws the pictures at once, or later when they were drawn just now; the more pages are open, the less often.
function redrawSoon() {
  if (waiting) return;
  waiting = setTimeout(
    () => {
      waiting = 0;
      drawn = Date.now();
      for (const image of document.querySelectorAll("img[data-picture]")) redraw(image).catch(() => {});
      dispatchEvent(new Event("redraw"));
    },
    Math.max(0, Math.max(LEAST_PICTURE_MS, PICTURE_MS_OF_PAGE * pages) - (Date.now() - drawn)),
  );
}

// Shows a picture once it is complete: the old one stays until then.
async function redraw(image) {
  const fresh = new Image();
  const address = image.dataset.picture;
  fresh.src = `${address}${address.includes("?") ? "&" : "?"}live=${Date.now()}`;
  await fresh.decode();
  image.src = fresh.src;
}

// What away.js shows: whether the gateway is there.
const say = (name, detail) => dispatchEvent(new CustomEvent(name, { detail }));
let events = null;
let away = 0;

// Follows the changes while somebody can see the page: a browser has six connections to a gateway for all its tabs.
function follow() {
  leave();
  if (document.hidden) return;
  events = new EventSource("/api/v1/events?live");
  say("follows", true);
  events.addEventListener("open", () => {
    say("heard");
    // What changed between the reading of the page and this connection came without a notice.
    setTimeout(refresh, LEAST_MS);
  });
  events.addEventListener("error", () => {
    // Closed: there is an answer, but no login any more, too many pages, or a proxy without the gateway.
    if (events?.readyState === EventSource.CLOSED) followLater();
    else say("lost");
  });
  events.addEventListener("quiet", () => say("quiet"));
  events.addEventListener("change", (event) => {
    say("quiet");
    const notice = JSON.parse(event.data);
    const changed = notice.subjects;
    pages = notice.pages;
    if (changed.includes("*") || changed.some((subject) => subjects.has(subject))) refresh();
    else countSoon();
  });
  for (const name of ["logout", "refused"]) {
    events.addEventListener(name, () => {
      leave();
      // The station of a kiosk, else the login.
      if (name === "logout") location.assign("/");
      else followLater();
    });
  }
}

function followLater() {
  refresh();
  away = setTimeout(follow, 5000);
}

function leave() {
  clearTimeout(away);
  events?.close();
  events = null;
  say("follows", false);
}

async function send(button, address, body) {
  const notice = document.getElementById("notice");
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  leaving = Boolean(button.dataset.next);
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": body instanceof Blob ? "application/gzip" : "application/json", "Idempotency-Key": crypto.randomUUID() },
      body: body instanceof Blob ? body : JSON.stringify(body),
    });
    if (answer.ok) {
      const done = await answer.json();
      const said = done.awaits_second ? notice.dataset.second : done.token ? `${button.dataset.made} ${done.token}` : "";
      notice.textContent = said;
      notice.hidden = !said;
      if (done.token) notice.scrollIntoView({ block: "center" });
      if (button.dataset.next) location.assign(button.dataset.next);
      else await refresh();
      return true;
    }
    leaving = false;
    const problem = await answer.json().catch(() => ({ reason: answer.statusText, advice: "" }));
    if (problem.kind === "is_badge") {
      dispatchEvent(new CustomEvent("badgetyped", { detail: button.form }));
      return;
    }
    notice.textContent = `${problem.reason} ${problem.advice}`;
    notice.hidden = false;
    notice.scrollIntoView({ block: "center" });
  } catch {
    leaving = false;
    notice.textContent = document.getElementById("offline").textContent;
    notice.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
    button.disabled = false;
  }
}

// Opens a dialog and returns its fields; nothing when the person closes it.
function ask(dialog) {
  const form = dialog.querySelector("form");
  form.reset();
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = () => {
      // The event of an earlier closing may come late: it does not answer this question.
      if (dialog.open) return;
      dialog.removeEventListener("close", closed);
      resolve(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
    };
    dialog.addEventListener("close", closed);
  });
}

// Asks whether to do what a button says; returns the comment, nothing when the person closes the dialog.
function confirmed(button) {
  const dialog = document.getElementById("ask");
  dialog.querySelector("#ask-title").textContent = button.dataset.title;
  dialog.querySelector("#ask-text").textContent = button.dataset.ask;
  dialog.querySelector("#ask-yes").textContent = button.dataset.yes ?? button.textContent;
  dialog.querySelector("label").hidden = Boolean(button.dataset.send);
  const label = dialog.querySelector("#ask-label");
  label.textContent = button.dataset.label ?? label.dataset.label;
  dialog.querySelector("input").required = button.dataset.reason !== undefined;
  return ask(dialog);
}

// Sends what a person answers; where it is to be signed, with the name and PIN, or with the badge.
async function sendSigned(button, signing, address, body) {
  const { sign, title } = signing.dataset;
  if (!sign) return send(button, address, body);
  const dialog = document.getElementById("sign");
  dialog.dataset.kind = sign;
  dialog.querySelector("#sign-title").textContent = title;
  const text = dialog.querySelector("#sign-text");
  text.textContent = text.dataset[sign];
  const badge = new Promise((resolve) => {
    dialog.addEventListener("badge", (event) => {
      resolve({ badge: event.detail });
      dialog.close("no");
    }, { once: true });
  });
  const signature = await Promise.race([badge, ask(dialog)]);
  if (signature) return send(button, address, { ...body, ...signature });
}

async function press(button, isHeld = false) {
  if (button.dataset.send) {
    if (button.dataset.ask && !(await confirmed(button))) return;
    await sendSigned(button, button, button.dataset.send, JSON.parse(button.dataset.given));
    return;
  }
  const { post, shelve, resolve, intervene, all } = button.dataset;
  if (all) {
    // Each one is a change of its own, so that one that was acknowledged meanwhile keeps none of the others.
    const given = await confirmed(button);
    const addresses = new Set([...document.querySelectorAll(`[data-post$="${all}"]`)].map((other) => other.dataset.post));
    for (const address of given ? addresses : []) await send(button, address, { comment: given.comment });
    return;
  }
  if (post && button.dataset.ask && (!isHeld || button.dataset.reason !== undefined)) {
    const given = await confirmed(button);
    if (given) await send(button, post, { [button.dataset.field ?? "comment"]: given.comment });
  } else if (post) {
    await send(button, post, {});
  } else if (shelve) {
    const given = await ask(document.getElementById("shelve"));
    if (given) await send(button, shelve, { comment: given.comment, minutes: Number(given.minutes) || null });
  } else if (resolve) {
    const dialog = document.getElementById("resolve");
    const [choice, then] = [...button.children].map((part) => part.textContent);
    for (const [id, text] of [["ask", button.dataset.ask], ["title", choice], ["then", then], ["yes", choice]]) {
      dialog.querySelector(`#resolve-${id}`).textContent = text;
    }
    const given = await ask(dialog);
    if (given) await send(button, resolve, { action: button.dataset.action, resolution: button.dataset.resolution, reason: given.reason });
  } else if (intervene) {
    const dialog = document.getElementById("intervene");
    dialog.querySelector("#intervene-title").textContent = button.dataset.title ?? button.textContent;
    const given = await ask(dialog);
    if (given) {
      // An open list is not replaced: it would show what is no longer possible.
      button.closest("details")?.removeAttribute("open");
      await send(button, intervene, { ...JSON.parse(button.dataset.given), reason: given.reason });
    }
  }
}

// On a panel a job is stopped by a button that is held: a touch by mistake does nothing. A key holds it, too.
const panel = matchMedia(document.getElementById("panel").media);
const HOLD_MS = 1500;
const HOLDING_KEYS = ["Enter", " "];
let held = null;
let holding = 0;

function hold(button) {
  if (held) return;
  held = button;
  pressed = true;
  button.classList.add("holding");
  holding = setTimeout(() => {
    release();
    press(button, true);
  }, HOLD_MS);
}

function release() {
  if (!held) return;
  clearTimeout(holding);
  held.classList.remove("holding");
  held = null;
  lift();
}

const heldBy = (event) => (panel.matches && event.target.closest?.("[data-hold]")) || null;

addEventListener("pointerdown", (event) => {
  const button = event.button === 0 && heldBy(event);
  if (button) hold(button);
});
addEventListener("keydown", (event) => {
  const button = HOLDING_KEYS.includes(event.key) && heldBy(event);
  if (!button) return;
  event.preventDefault();
  if (!event.repeat) hold(button);
});
addEventListener("keyup", (event) => {
  if (HOLDING_KEYS.includes(event.key) && heldBy(event)) event.preventDefault();
  release();
});
for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, release);
addEventListener("pointermove", (event) => {
  // A finger that slides off the button does not mean it.
  if (held && !held.contains(document.elementFromPoint(event.clientX, event.clientY))) release();
});
addEventListener("contextmenu", (event) => heldBy(event) && event.preventDefault());
addEventListener(
  "click",
  (event) => {
    // A click without a finger or a key, as of a screen reader, is asked about in the dialog.
    if (heldBy(event) && event.detail > 0) event.stopPropagation();
  },
  true,
);

// Ends the login of a panel that is not touched, and shows the station.
const idleMs = Number(document.body.dataset.idle ?? 0) * 1000;
const REPORT_MS = 10_000;
let touched = Date.now();
let reported = touched;

function touch() {
  touched = Date.now();
  if (touched - reported < REPORT_MS) return;
  reported = touched;
  // Reading and typing are activity, too: without a request the gateway would end the login.
  fetch("/api/v1/me").catch(() => {});
}

async function leaveIdle() {
  if (!idleMs || Date.now() - touched < idleMs) return;
  touched = Date.now();
  await fetch("/api/v1/session", { method: "DELETE" }).catch(() => {});
  location.assign("/");
}

if (idleMs) {
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, touch, true);
  setInterval(leaveIdle, 1000);
}

document.addEventListener("click", (event) => {
  // A button of its own, not of the form: Enter in a field must not close the dialog without an effect.
  event.target.closest?.("[data-close]")?.closest("dialog").close("no");
  const button = event.target.closest?.("[data-post], [data-send], [data-shelve], [data-resolve], [data-intervene], [data-all]");
  if (button) press(button);
});

// Orders a job from the form of a recipe: a field with the type of its default.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.order) return;
  event.preventDefault();
  const parameters = {};
  for (const field of form.querySelectorAll("[data-parameter]")) {
    if (field.value === "" && field.dataset.type !== "string") continue;
    parameters[field.dataset.parameter] = typed(field.value, field.dataset.type);
  }
  const { scope, master } = form.dataset;
  const given = { scope, work_master: master, id: form.elements.id.value, parameters, start: event.submitter?.value !== "store" };
  if (form.elements.priority.value) given.priority = Number(form.elements.priority.value);
  event.submitter.dataset.next = `/job?id=${encodeURIComponent(given.id)}`;
  send(event.submitter, form.dataset.order, given);
});

// Sends the fields of a form by their names, and what else it is given; done, it closes, and what was typed is gone.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.form) return;
  event.preventDefault();
  const given = { ...JSON.parse(form.dataset.given ?? "{}"), ...Object.fromEntries(new FormData(form)) };
  const details = form.closest("details");
  details?.removeAttribute("open");
  if (await send(event.submitter ?? form.querySelector("button"), form.dataset.form, given)) form.reset();
  else details?.setAttribute("open", "");
});

// Sends a file as it is.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.upload) return;
  event.preventDefault();
  const file = form.querySelector("input[type=file]").files[0];
  if (file && (await send(event.submitter ?? form.querySelector("button"), form.dataset.upload, file))) form.reset();
});

// Sends the values that a prompt asks for.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.answer) return;
  event.preventDefault();
  const button = event.submitter ?? form.querySelector("button");
  sendSigned(button, form, form.dataset.answer, { values: Object.fromEntries(new FormData(form)) });
});

function typed(text, type) {
  if (type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function lift() {
  pressed = false;
  // After the click that follows.
  if (missed) setTimeout(refresh);
  missed = false;
}

for (const name of ["pointerup", "pointercancel"]) addEventListener(name, lift);
addEventListener("pointerdown", (event) => {
  pressed = Boolean(event.target.closest?.("button, a, summary"));
});

localize(document);
setInterval(tick, 1000);

if (subjects.size) {
  follow();
  const every = document.querySelector("[data-every]")?.dataset.every;
  if (every) setInterval(() => document.hidden || refresh(), Number(every));
  document.addEventListener("visibilitychange", () => {
    follow();
    if (!document.hidden) refresh();
  });
}
