// A draft on the gateway: its changes are sent one after the other, each for the version that its author has seen.

export class Draft extends EventTarget {
  #address;
  #queue = Promise.resolve();
  detail = null;

  constructor(id) {
    super();
    this.#address = `/api/v1/recipe-drafts/${encodeURIComponent(id)}`;
  }

  get recipe() {
    return this.detail.recipe;
  }

  load() {
    return this.#next(async () => this.#take(await this.read("")));
  }

  // Returns whether the gateway has made the change, or what a function makes of the recipe before it; nothing is sent
  // where that is nothing. Who shows the recipe afterwards gets `after`.
  change(change, after) {
    return this.#send("change", { change }, after);
  }

  write(text) {
    return this.#send("text", { text });
  }

  undo() {
    return this.#send("undo", {});
  }

  redo() {
    return this.#send("redo", {});
  }

  // Returns an answer about the draft, nothing where the gateway refuses.
  async read(path, body) {
    const { answer } = await request(this.#address + path, body);
    return answer;
  }

  // Waits for the answers to what was sent.
  settled() {
    return this.#queue;
  }

  // Shows what another person has changed meanwhile; after the changes of this one, whose answers are still to come.
  refresh() {
    return this.#next(async () => {
      const found = await this.read("");
      if (found && found.draft.current !== this.detail.draft.current) this.#take(found);
    });
  }

  #next(work) {
    this.#queue = this.#queue.then(work, work);
    return this.#queue;
  }

  #send(path, body, after) {
    return this.#next(() => this.#post(path, body, after));
  }

  async #post(path, body, after) {
    const began = performance.now();
    if (typeof body.change === "function") body = { change: body.change(this.recipe) };
    if (path === "change" && !body.change) return true;
    const { answer, problem } = await request(`${this.#address}/${path}`, { version: this.detail.draft.current, ...body });
    if (answer) {
      this.#take(answer, after);
      this.dispatchEvent(new CustomEvent("measured", { detail: performance.now() - began }));
      return true;
    }
    if (problem.kind === "draft_changed") this.dispatchEvent(new CustomEvent("conflict", { detail: { path, body, problem } }));
    else this.dispatchEvent(new CustomEvent("refused", { detail: problem }));
    return false;
  }

  #take(detail, after) {
    if (!detail) return false;
    this.detail = { ...detail, recipe: detail.recipe && canonical(detail.recipe) };
    this.dispatchEvent(new CustomEvent("changed", { detail: after }));
    return true;
  }

  // Repeats a change on what another person has made of the draft.
  async repeat({ path, body }) {
    await this.load();
    return this.#send(path, body);
  }

  // Begins a draft with what this person has seen and changed; returns its id.
  async apart({ path, body }) {
    const { scope, work_master } = this.detail.draft;
    const text = body.text ?? this.detail.text;
    const { answer, problem } = await request("/api/v1/recipe-drafts", { scope, work_master, text });
    if (!answer) {
      this.dispatchEvent(new CustomEvent("refused", { detail: problem }));
      return "";
    }
    if (path === "change") await request(`/api/v1/recipe-drafts/${answer.draft.id}/change`, { version: answer.draft.current, ...body });
    return answer.draft.id;
  }
}

// Reads an answer, or sends a change; returns the answer or the problem.
export async function request(address, body) {
  try {
    const found = await fetch(
      address,
      body && {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
        body: JSON.stringify(body),
      },
    );
    const content = await found.json();
    return found.ok ? { answer: content } : { problem: content };
  } catch {
    return { problem: { kind: "offline", reason: document.getElementById("offline").textContent, advice: "" } };
  }
}

const LISTS = ["steps", "transitions", "actions", "branches"];

// Returns a recipe with its keys in snake_case: a MES may write PascalCase.
function canonical(recipe) {
  const found = renamed(recipe);
  for (const list of LISTS) found[list] = Array.isArray(found[list]) ? found[list].map(renamed) : [];
  return found;
}

function renamed(item) {
  if (!item || typeof item !== "object" || Array.isArray(item)) return item;
  return Object.fromEntries(Object.entries(item).map(([key, value]) => [snake(key), value]));
}

function snake(key) {
  return key.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
}
