// Makes a draft of a file that a person drops or chooses: a chart of a PLC tool, or a recipe as JSON.

const form = document.getElementById("import");
const drop = document.getElementById("drop");
const notice = document.getElementById("notice");
const MOST_BYTES = 2 * 1024 * 1024;
const { file: chooser, work_master: name, scope, pou } = form.elements;

function report(text) {
  notice.textContent = text;
  notice.hidden = false;
  notice.scrollIntoView({ block: "center" });
}

// Returns the text of a file in the encoding that its first bytes or its declaration name.
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const [first, second] = bytes;
  const marked = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "";
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 200));
  const declared = /^<\?xml[^>]*encoding\s*=\s*["']([\w-]+)["']/.exec(head)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(marked || declared).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

// Proposes the name of the Work Master, and the charts among which to choose.
async function look(file) {
  // The chart of a file before is none of this one.
  pou.value = "";
  if (!name.value) name.value = file.name.replace(/\.\w+$/, "");
  const text = await textOf(file);
  const pous = [...text.matchAll(/<pou\b[^>]*\bname="([^"]+)"/g)].map((match) => match[1]);
  const found = document.getElementById("pous");
  found.replaceChildren(...pous.map((value) => Object.assign(document.createElement("option"), { value })));
  pou.closest("label").hidden = pous.length < 2;
}

async function send() {
  const [file] = chooser.files;
  if (file.size > MOST_BYTES) {
    report(form.dataset.large);
    return;
  }
  const body = { scope: scope.value, work_master: name.value.trim(), text: await textOf(file), pou: pou.value.trim() };
  const answer = await fetch("/api/v1/recipe-drafts", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
    body: JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({ reason: answer.statusText, advice: "" }));
  if (!answer.ok) {
    report(`${found.reason} ${found.advice}`);
    return;
  }
  const address = `/recipe-draft?draft=${encodeURIComponent(found.draft.id)}`;
  // With faults the file itself is the draft, and its page names the places.
  if (found.problems.length || !found.warnings.length) location.assign(address);
  else warn(found.warnings, address);
}

// What differs from the PLC is said once: the draft is a recipe now.
function warn(warnings, address) {
  const list = document.getElementById("import-warnings");
  list.replaceChildren(...warnings.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  document.getElementById("import-open").href = address;
  document.getElementById("imported").hidden = false;
  document.getElementById("imported").scrollIntoView({ block: "start" });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    await send();
  } catch {
    report(document.getElementById("offline").textContent);
  } finally {
    button.disabled = false;
  }
});
chooser.addEventListener("change", () => chooser.files[0] && look(chooser.files[0]));
for (const kind of ["dragover", "dragleave", "drop"]) {
  drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files[0]) {
      chooser.files = event.dataTransfer.files;
      look(chooser.files[0]);
    }
  });
}
// A file beside the field does not replace the page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
