// Checks a recipe that a person drops or chooses, and steps through its simulation. The gateway checks and draws.

const part = (id) => document.getElementById(id);
const texts = part("check").dataset;
const MOST_BYTES = 250000;
let recipe = null;
let events = [];
let position = -1;
let shown = "";

async function ask(address, body) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({ reason: answer.statusText, advice: "" }));
  if (!answer.ok) throw new Error(`${found.reason} ${found.advice}`);
  return found;
}

function report(error) {
  part("problem").textContent = error.message;
  part("problem").hidden = false;
}

async function read(file) {
  if (file.size > MOST_BYTES) throw new Error(texts.large);
  try {
    return JSON.parse(await file.text());
  } catch {
    throw new Error(texts.json);
  }
}

function list(id, lines) {
  part(id).replaceChildren(
    ...lines.map((line) => {
      const item = document.createElement("li");
      item.textContent = line;
      return item;
    }),
  );
}

function draw(svg) {
  URL.revokeObjectURL(shown);
  shown = svg ? URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })) : "";
  part("chart-part").hidden = !svg;
  if (svg) part("chart").src = shown;
}

async function check(file) {
  part("problem").hidden = true;
  // Nothing of the file before: it says nothing about this one.
  part("result").hidden = true;
  try {
    recipe = await read(file);
    const found = await ask("/api/v1/recipes/check", { recipe });
    list("faults", found.faults);
    list("warnings", found.warnings);
    part("no-faults").hidden = found.faults.length > 0;
    part("warnings-part").hidden = !found.warnings.length;
    part("simulation").hidden = found.faults.length > 0;
    show([], "");
    draw(found.chart);
    part("result").hidden = false;
  } catch (error) {
    report(error);
  }
}

function show(found, outcome) {
  events = found;
  position = -1;
  part("outcome").textContent = outcome;
  part("previous").hidden = part("next").hidden = !events.length;
  part("events").replaceChildren(
    ...events.map((event, number) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      const at = document.createElement("span");
      at.className = "detail";
      at.textContent = `${event.t.toFixed(3)} s`;
      button.append(at, event.text);
      button.addEventListener("click", () => go(number).catch(report));
      item.append(button);
      return item;
    }),
  );
}

async function go(number) {
  if (number < 0 || number >= events.length) return;
  position = number;
  for (const [place, button] of part("events").querySelectorAll("button").entries()) {
    if (place === number) {
      button.setAttribute("aria-current", "step");
      button.scrollIntoView({ block: "nearest" });
    } else {
      button.removeAttribute("aria-current");
    }
  }
  const found = await ask("/api/v1/recipes/check", { recipe, active: events[number].active });
  if (position === number) draw(found.chart);
}

async function simulate() {
  part("problem").hidden = true;
  part("simulate").disabled = true;
  try {
    const [file] = part("script").files;
    const body = file ? { recipe, script: await read(file) } : { recipe };
    const found = await ask("/api/v1/recipes/simulate", body);
    show(found.events, `${part("outcome").dataset.label}: ${found.outcome}${found.truncated ? " …" : ""}`);
    await go(0);
  } catch (error) {
    report(error);
  } finally {
    part("simulate").disabled = false;
  }
}

part("recipe").addEventListener("change", ({ target }) => target.files[0] && check(target.files[0]));
part("simulate").addEventListener("click", simulate);
part("previous").addEventListener("click", () => go(position - 1).catch(report));
part("next").addEventListener("click", () => go(position + 1).catch(report));
for (const name of ["dragover", "dragleave", "drop"]) {
  part("drop").addEventListener(name, (event) => {
    event.preventDefault();
    part("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) check(event.dataTransfer.files[0]);
  });
}
