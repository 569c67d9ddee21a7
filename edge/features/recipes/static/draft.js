// A draft on the gateway: its changes are sent one after the other, each for the version that its author has seen.

// What a function returns whose element another person has removed.
export const GONE = Object.freeze({});

export class Draft extends EventTarget {
  #address;
  #decide;
  #queue = Promise.resolve();
  detail = null;

  // `decide(path, problem)` asks the person where another one came first: `repeat`, `apart`, or anything else to drop it.
  constructor(id, decide) {
    super();
    this.#decide = decide;
    this.#address = addressOf(id);
  }

  get recipe() {
    return this.detail.recipe;
  }

  load() {
    return this.#next(async () => {
      const { answer, problem } = await request(this.#address);
      return answer ? this.#take(answer) : this.#refuse(problem);
    });
  }

  // Returns whether the gateway has made what a function makes of the recipe before it: once more of a newer recipe
  // where another person came first. Nothing is sent where that is nothing. Who shows the recipe afterwards gets `after`.
  // With what `seen` returns, the change that leaves the element as the person saw it, the gateway asks before it takes back what
  // another one has written meanwhile; a change that is repeated has been decided.
  change(changeOf, after, seen) {
    return this.#send("change", after, (isDecided) => {
      const change = changeOf(this.recipe);
      return change && (change === GONE ? GONE : { change, seen: isDecided ? undefined : seen?.() });
    });
  }

  // Replaces the text of the version that it was written from.
  write(text, version) {
    return this.#send("text", undefined, () => ({ text, version: version() }));
  }

  // Continues with another draft, of which this is what the gateway has said.
  continueWith(detail) {
    return this.#next(async () => {
      this.#address = addressOf(detail.draft.id);
      return this.#take(detail);
    });
  }

  undo(after) {
    return this.#send("undo", after, () => ({}));
  }

  redo(after) {
    return this.#send("redo", after, () => ({}));
  }

  // Returns an answer about the draft, nothing where the gateway refuses.
  async read(path, body) {
    const { answer } = await request(this.#address + path, body);
    return answer;
  }

  // Waits for the answers to what was sent.
  settled() {
    return this.#queue.catch(() => {});
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

  #send(path, after, bodyOf) {
    return this.#next(() => this.#post(path, after, bodyOf));
  }

  // What comes behind waits for the answer, and for the decision of the person.
  async #post(path, after, bodyOf) {
    const began = performance.now();
    for (let isDecided = false; ; isDecided = true) {
      const body = bodyOf(isDecided);
      if (!body) return true;
      if (body === GONE) {
        this.dispatchEvent(new Event("gone"));
        return false;
      }
      const { answer, problem } = await request(`${this.#address}/${path}`, { version: this.detail.draft.current, ...body });
      if (answer) {
        this.#take(answer, after);
        performance.measure("change", { start: began });
        return true;
      }
      if (problem.kind === "unknown_draft") this.dispatchEvent(new Event("ended"));
      if (problem.kind !== "draft_changed") return this.#refuse(problem);
      const decision = await this.#decide(path, problem);
      if (decision === "apart") return this.#apart(path, body);
      this.#take(await this.read(""));
      if (decision !== "repeat") return false;
    }
  }

  #refuse(problem) {
    this.dispatchEvent(new CustomEvent("refused", { detail: problem }));
    return false;
  }

  #take(detail, after) {
    if (!detail) return false;
    this.detail = { ...detail, recipe: detail.recipe && canonical(detail.recipe) };
    this.dispatchEvent(new CustomEvent("changed", { detail: after }));
    return true;
  }

  // Begins a draft with what this person has seen and changed; without the change there is none.
  async #apart(path, body) {
    const { scope, work_master } = this.detail.draft;
    const begun = await request("/api/v1/recipe-drafts", { scope, work_master, text: body.text ?? this.detail.text });
    if (!begun.answer) return this.#refuse(begun.problem);
    const { id, current } = begun.answer.draft;
    if (path === "change") {
      const { problem } = await request(`/api/v1/recipe-drafts/${id}/change`, { change: body.change, version: current });
      if (problem) {
        await request(`/api/v1/recipe-drafts/${id}/discard`, { version: current });
        return this.#refuse(problem);
      }
    }
    this.dispatchEvent(new CustomEvent("apart", { detail: id }));
    return true;
  }
}

function addressOf(id) {
  return `/api/v1/recipe-drafts/${encodeURIComponent(id)}`;
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
