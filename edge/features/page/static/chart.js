// Shows the chart of a job: letters stay readable, the active step stays in view, a small map shows the whole.

const view = document.querySelector("[data-chart]");
const paper = view.querySelector(".paper");
const image = paper.querySelector("img");
const map = view.querySelector(".map");
const mapImage = map.querySelector("img");
const frame = map.querySelector("span");
const followButton = view.querySelector("[data-follow]");

const LEAST = 1; // The letters of the picture have 12 pixels and more.
const MOST = 3;
const STEP = 1.25;
const MAP_WIDTH = 150;
const MAP_HEIGHT = 110;

let scale = LEAST;
let size = { width: 1, height: 1 };
let active = null;
let following = true;
let moving = false;
let address = "";

// Draws the picture as it is now; the gateway marks the active steps.
async function draw() {
  const answer = await fetch(`${view.dataset.chart}?live=${Date.now()}`);
  if (!answer.ok) return;
  const text = await answer.text();
  // Parsed as a document its styles would violate the policy of the page.
  const [width, height] = /<svg [^>]*?width="(\d+)" height="(\d+)"/.exec(text).slice(1).map(Number);
  size = { width, height };
  const found = /<rect class="[^"]*\bactive\b[^"]*" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/.exec(text);
  active = found && { x: Number(found[1]), y: Number(found[2]), width: Number(found[3]), height: Number(found[4]) };
  const fresh = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  for (const picture of [image, mapImage]) picture.src = fresh;
  await image.decode();
  URL.revokeObjectURL(address);
  address = fresh;
  lay();
}

function lay() {
  image.style.width = `${size.width * scale}px`;
  image.style.height = `${size.height * scale}px`;
  const share = Math.min(MAP_WIDTH / size.width, MAP_HEIGHT / size.height);
  map.style.width = `${size.width * share}px`;
  map.style.height = `${size.height * share}px`;
  map.hidden = size.width * scale <= paper.clientWidth + 1 && size.height * scale <= paper.clientHeight + 1;
  if (following && active) {
    centre(active.x + active.width / 2, active.y + active.height / 2);
  }
  place();
}

// Moves a point of the picture to the middle of the view.
function centre(x, y) {
  moving = true;
  paper.scrollTo(x * scale - paper.clientWidth / 2, y * scale - paper.clientHeight / 2);
  requestAnimationFrame(() => requestAnimationFrame(() => (moving = false)));
}

function place() {
  const share = map.clientWidth / (size.width * scale);
  frame.style.left = `${paper.scrollLeft * share}px`;
  frame.style.top = `${paper.scrollTop * share}px`;
  frame.style.width = `${Math.min(1, paper.clientWidth / (size.width * scale)) * 100}%`;
  frame.style.height = `${Math.min(1, paper.clientHeight / (size.height * scale)) * 100}%`;
  followButton.setAttribute("aria-pressed", String(following));
}

function zoom(factor, x = paper.clientWidth / 2, y = paper.clientHeight / 2) {
  const next = Math.min(MOST, Math.max(LEAST, scale * factor));
  const at = { x: (paper.scrollLeft + x) / scale, y: (paper.scrollTop + y) / scale };
  scale = next;
  lay();
  if (!following) paper.scrollTo(at.x * scale - x, at.y * scale - y);
  place();
}

view.addEventListener("click", (event) => {
  const { zoom: factor, follow } = event.target.closest("button")?.dataset ?? {};
  if (factor) zoom(factor === "in" ? STEP : 1 / STEP);
  if (follow !== undefined) {
    following = !following;
    lay();
  }
});

paper.addEventListener("scroll", () => {
  if (!moving) following = false;
  place();
});

// The wheel zooms with Ctrl, as a touchpad pinches, or once the chart has the focus.
paper.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey && document.activeElement !== paper) return;
    event.preventDefault();
    const box = paper.getBoundingClientRect();
    zoom(event.deltaY < 0 ? STEP : 1 / STEP, event.clientX - box.left, event.clientY - box.top);
  },
  { passive: false },
);

const fingers = new Map();
const span = () => {
  const [a, b] = [...fingers.values()];
  return Math.hypot(a.x - b.x, a.y - b.y);
};
paper.addEventListener("pointerdown", (event) => fingers.set(event.pointerId, { x: event.clientX, y: event.clientY }));
paper.addEventListener("pointermove", (event) => {
  if (!fingers.has(event.pointerId)) return;
  const before = fingers.size === 2 ? span() : 0;
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  if (before) zoom(span() / before);
});
for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
  paper.addEventListener(name, (event) => fingers.delete(event.pointerId));
}

map.addEventListener("click", (event) => {
  const box = map.getBoundingClientRect();
  following = false;
  centre(((event.clientX - box.left) / box.width) * size.width, ((event.clientY - box.top) / box.height) * size.height);
  place();
});

view.querySelector(".controls").hidden = false;
addEventListener("resize", lay);
addEventListener("redraw", () => draw().catch(() => {}));
draw().catch(() => {});
