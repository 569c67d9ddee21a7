// The end of a draft under a page about it: the page stays, says who released the draft, and offers to continue.

import { request } from "./draft.js";
import { worded } from "./words.js";

// Returns the revision that a draft has become, null for one that was discarded; a problem where the gateway does not say.
async function endOf({ id, scope, work_master }) {
  const { answer, problem } = await request(`/api/v1/recipes/${encodeURIComponent(scope)}/${encodeURIComponent(work_master)}/revisions`);
  return problem ? { problem } : { revision: answer.revisions.find(({ draft }) => draft === id) ?? null };
}

// The banner of a page; `begun(detail, revision)` is called with the draft that the person begins.
export class Ended {
  #banner = document.getElementById("ended");
  #revision = null;
  // The draft that was continued: what was asked about it before says nothing any more.
  #former = "";

  // `draft()` returns what ends, and the text that it had where the person sees one.
  constructor(draft, begun) {
    addEventListener("missing", (event) => {
      event.preventDefault();
      this.show(draft());
    });
    this.#banner.querySelector("button").addEventListener("click", () => this.#begin(draft(), begun));
  }

  async show(draft) {
    const { revision, problem } = await endOf(draft);
    if (draft.id === this.#former) return;
    const { released, discarded, from, again } = this.#banner.dataset;
    const said = (text) => worded(text, { author: revision.author, revision: revision.number, reason: revision.reason });
    this.#revision = revision;
    this.#banner.querySelector("span").textContent = problem ? `${problem.reason} ${problem.advice}` : revision ? said(released) : discarded;
    const button = this.#banner.querySelector("button");
    button.hidden = Boolean(problem);
    button.textContent = revision ? said(from) : again;
    this.#banner.hidden = false;
  }

  async #begin({ id, scope, work_master, text }, begun) {
    const { answer, problem } = await request("/api/v1/recipe-drafts", this.#revision ? { scope, work_master } : { scope, work_master, text });
    if (problem) {
      this.#banner.querySelector("span").textContent = `${problem.reason} ${problem.advice}`;
      return;
    }
    this.#former = id;
    this.#banner.hidden = true;
    await begun(answer, this.#revision);
  }
}
