// Begins a draft from a form, and opens it.

import { request } from "./draft.js";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.begin) return;
  event.preventDefault();
  const { scope, work_master, revision } = Object.fromEntries(new FormData(form));
  const body = { scope, work_master: work_master.trim(), ...(revision && { revision: Number(revision) }) };
  const { answer, problem } = await request("/api/v1/recipe-drafts", body);
  if (answer) {
    location.assign(`${form.dataset.begin}?draft=${encodeURIComponent(answer.draft.id)}`);
    return;
  }
  const notice = document.getElementById("notice");
  notice.textContent = `${problem.reason} ${problem.advice}`;
  notice.hidden = false;
});
