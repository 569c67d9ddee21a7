// Moves to the first change of a comparison. Replays past jobs with a draft or a revision, part by part, and shows the first decision of each that differs.

import { show } from "./view.js";
import { worded } from "./words.js";

const part = (id) => document.getElementById(id);
const view = part("past");
const texts = view?.dataset;
const notice = part("notice");
const MOST_SHOWN = 50;
let stopped = false;

function item(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function row(job) {
  const { first } = job;
  const link = item("a", { href: `/job?id=${encodeURIComponent(job.job_order_id)}`, textContent: job.job_order_id });
  const text = item(
    "span",
    { className: "detail" },
    item("strong", { textContent: worded(texts.decision, { number: first.number, signal: first.signal }) }),
    item("br", {}),
    worded(texts.then, { changes: first.then }),
    item("br", {}),
    worded(texts.now, { changes: first.now }),
  );
  return item("li", { className: "changed" }, item("b", { textContent: "~", ariaHidden: "true" }), link, text);
}

async function portion(after) {
  const answer = await fetch(`${texts.replay}?after=${encodeURIComponent(after)}`).catch(() => null);
  if (!answer) return { problem: part("offline").textContent };
  const found = await answer.json().catch(() => ({ reason: answer.statusText, advice: "" }));
  return answer.ok ? found : { problem: `${found.reason} ${found.advice}` };
}

function showSums(sums) {
  const said = part("replayed");
  said.hidden = false;
  said.className = `banner ${!sums.total ? "warn" : sums.different ? "warn" : "good"}`;
  const counts = worded(texts.said, { same: sums.same, different: sums.different, total: sums.total });
  said.textContent = sums.total ? counts : texts.none;
  part("others").hidden = !sums.different;
  const missing = part("not-replayed");
  missing.hidden = !sums.not_replayed;
  missing.querySelector("summary").textContent = worded(texts.not, { number: sums.not_replayed });
}

function add(found, sums) {
  for (const name of ["same", "different", "not_replayed"]) sums[name] += found[name];
  sums.total = found.total;
  for (const job of found.jobs) {
    if (job.reason) part("not-replayed").querySelector("ul").append(item("li", { textContent: `${job.job_order_id}: ${job.reason}` }));
    else if (job.first && part("others").children.length < MOST_SHOWN) part("others").append(row(job));
  }
}

async function replay() {
  notice.hidden = true;
  stopped = false;
  part("replay").disabled = true;
  part("stop").hidden = part("progress").hidden = false;
  part("progress").removeAttribute("value");
  part("replayed").hidden = true;
  part("others").replaceChildren();
  part("not-replayed").querySelector("ul").replaceChildren();
  const sums = { same: 0, different: 0, not_replayed: 0, total: 0 };
  let next = "";
  while (next !== null && !stopped) {
    const found = await portion(next);
    if (found.problem) {
      notice.textContent = found.problem;
      notice.hidden = false;
      break;
    }
    add(found, sums);
    next = found.next;
    part("progress").max = Math.max(1, found.total);
    part("progress").value = sums.same + sums.different + sums.not_replayed;
    showSums(sums);
  }
  part("replay").disabled = false;
  part("stop").hidden = part("progress").hidden = true;
}

// Moves to the first change: the chart may be wider than the view.
async function look(image) {
  const answer = await fetch(image.getAttribute("src"));
  if (answer.ok) await show(image, await answer.text(), /<rect class="mark" x="([\d.]+)" y="([\d.]+)"/);
}

if (part("compared")) look(part("compared")).catch(() => {});
if (view) {
  part("replay").addEventListener("click", replay);
  part("stop").addEventListener("click", () => (stopped = true));
}
