// Keeps a page of the gateway up to date and sends what a person asks for. The server renders; nothing is built here.

const root = document.documentElement;
root.dataset.js = "";
const subjects = new Set(JSON.parse(document.body.dataset.subjects));
const LEAST_MS = 150;
const LEAST_PICTURE_MS = 500;
const PICTURE_MS_OF_PAGE = 100;

let reading = false;
let again = false;
let last = 0;
let drawn = 0;
let waiting = 0;
let pages = 1;

// Reads this page again and replaces the parts that differ; what has the focus keeps it.
async function refresh() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const wait = LEAST_MS - (Date.now() - last);
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    last = Date.now();
    const answer = await fetch(location.href, { headers: { "X-Live": "1" } });
    offline.hidden = answer.status < 500;
    if (answer.redirected) location.assign("/login");
    if (!answer.ok) {
      if (answer.status === 404) location.assign("/jobs");
      return;
    }
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (partsOf(found).join() !== partsOf(document).join()) {
      location.reload();
      return;
    }
    replaceParts(found);
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
    if (fresh.outerHTML === part.outerHTML || part.querySelector("details[open]")) continue;
    const focused = part.contains(document.activeElement) ? keyOf(document.activeElement) : "";
    part.replaceWith(fresh);
    if (focused) [...fresh.querySelectorAll("a, button")].find((control) => keyOf(control) === focused)?.focus();
  }
}

function keyOf(element) {
  return element.dataset.post || (element.dataset.send && element.dataset.send + element.dataset.given) || element.dataset.shelve || element.dataset.resolve || element.dataset.given || element.getAttribute("href") || "";
}

// Draws the pictures at once, or later when they were drawn just now; the more pages are open, the less often.
function redrawSoon() {
  if (waiting) return;
  waiting = setTimeout(
    () => {
      waiting = 0;
      drawn = Date.now();
      for (const image of document.querySelectorAll("img[data-picture]")) redraw(image).catch(() => {});
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

const offline = document.getElementById("offline");
let events = null;
let away = 0;

// Follows the changes while somebody can see the page: a browser has six connections to a gateway for all its tabs.
function follow() {
  leave();
  if (document.hidden) return;
  events = new EventSource("/api/v1/events?live");
  events.addEventListener("open", () => {
    if (!offline.hidden) refresh();
    offline.hidden = true;
  });
  events.addEventListener("error", () => {
    // Closed: there is an answer, but no login any more, too many pages, or a proxy without the gateway.
    if (events?.readyState === EventSource.CLOSED) followLater();
    else offline.hidden = false;
  });
  events.addEventListener("change", (event) => {
    const notice = JSON.parse(event.data);
    const changed = notice.subjects;
    pages = notice.pages;
    if (changed.includes("*") || changed.some((subject) => subjects.has(subject))) refresh();
  });
  for (const name of ["logout", "refused"]) {
    events.addEventListener(name, () => {
      leave();
      if (name === "logout") location.assign("/login");
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
}

async function send(button, address, body) {
  const notice = document.getElementById("notice");
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
      body: JSON.stringify(body),
    });
    if (answer.ok) {
      const done = await answer.json();
      notice.hidden = !done.awaits_second;
      if (done.awaits_second) notice.textContent = notice.dataset.second;
      if (button.dataset.next) location.assign(button.dataset.next);
      else await refresh();
      return;
    }
    const problem = await answer.json().catch(() => ({ reason: answer.statusText, advice: "" }));
    notice.textContent = `${problem.reason} ${problem.advice}`;
    notice.hidden = false;
    notice.scrollIntoView({ block: "center" });
  } catch {
    notice.textContent = document.getElementById("offline").textContent;
    notice.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
    button.disabled = false;
  }
}

// Opens a dialog and returns its fields; nothing when the person closes it.
function ask(dialog) {
  dialog.querySelector("form").reset();
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => resolve(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(dialog.querySelector("form"))) : null),
      { once: true },
    );
  });
}

// Asks whether to do what a button says; returns the comment, nothing when the person closes the dialog.
function confirmed(button) {
  const dialog = document.getElementById("ask");
  dialog.querySelector("#ask-title").textContent = button.dataset.title;
  dialog.querySelector("#ask-text").textContent = button.dataset.ask;
  dialog.querySelector("#ask-yes").textContent = button.textContent;
  dialog.querySelector("label").hidden = Boolean(button.dataset.send);
  return ask(dialog);
}

async function press(button) {
  if (button.dataset.send) {
    if (button.dataset.ask && !(await confirmed(button))) return;
    await send(button, button.dataset.send, JSON.parse(button.dataset.given));
    return;
  }
  const { post, shelve, resolve, intervene } = button.dataset;
  if (post && button.dataset.ask) {
    const given = await confirmed(button);
    if (given) await send(button, post, { [button.dataset.field ?? "comment"]: given.comment });
  } else if (post) {
    await send(button, post, {});
  } else if (shelve) {
    const given = await ask(document.getElementById("shelve"));
    if (given) await send(button, shelve, { comment: given.comment, minutes: Number(given.minutes) || null });
  } else if (resolve) {
    const dialog = document.getElementById("resolve");
    dialog.querySelector("#resolve-text").textContent = button.dataset.action;
    const given = await ask(dialog);
    if (given) await send(button, resolve, { action: button.dataset.action, resolution: given.resolution, reason: given.reason });
  } else if (intervene) {
    const dialog = document.getElementById("intervene");
    dialog.querySelector("#intervene-title").textContent = button.textContent;
    const given = await ask(dialog);
    if (given) {
      // An open list is not replaced: it would show what is no longer possible.
      button.closest("details")?.removeAttribute("open");
      await send(button, intervene, { ...JSON.parse(button.dataset.given), reason: given.reason });
    }
  }
}

document.addEventListener("click", (event) => {
  // A button of its own, not of the form: Enter in a field must not close the dialog without an effect.
  event.target.closest?.("[data-close]")?.closest("dialog").close("no");
  const button = event.target.closest?.("[data-post], [data-send], [data-shelve], [data-resolve], [data-intervene]");
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

function typed(text, type) {
  if (type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

if (subjects.size) {
  follow();
  const every = document.querySelector("[data-every]")?.dataset.every;
  if (every) setInterval(() => document.hidden || refresh(), Number(every));
  document.addEventListener("visibilitychange", () => {
    follow();
    if (!document.hidden) refresh();
  });
}
