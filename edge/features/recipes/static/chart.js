// The chart of a draft: its elements are selected by mouse, finger and arrow keys. The gateway draws.

const NEAR = 1;
const ASIDE = 3;
const STEP = 1.2;
const LEAST = 0.5;
const LEAST_FITTED = 0.85;
const MOST = 2.4;

export class Chart extends EventTarget {
  #paper;
  #names;
  #firstOf;
  #selection = { kind: "recipe" };
  #levels = new Map();
  #scale = 0;
  #width = 0;
  // The distance of two fingers at which the scale would be 1.
  #apart = 0;

  // `firstOf` returns the first element in the paths of a branch.
  constructor(paper, names, firstOf) {
    super();
    this.#paper = paper;
    this.#names = names;
    this.#firstOf = firstOf;
    paper.addEventListener("click", (event) => this.#click(event));
    paper.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["touchstart", "touchmove", "touchend"]) paper.addEventListener(name, (event) => this.#pinch(event), { passive: false });
  }

  get selection() {
    return this.#selection;
  }

  // Shows a picture, and what is selected in it.
  show(svg, selection = this.#selection) {
    const hadFocus = this.hasFocus;
    this.#keep(selection);
    if (!svg) {
      this.#paper.replaceChildren();
      return;
    }
    // Its styles stand in the style sheet of the page: the policy of the page allows no others.
    const picture = new DOMParser().parseFromString(svg.replace(/<style>[^]*?<\/style>/, ""), "image/svg+xml").documentElement;
    this.#width = Number(picture.getAttribute("width"));
    // At first the whole width is shown, as long as its letters can be read.
    this.#scale ||= Math.min(1, Math.max(LEAST_FITTED, (this.#paper.clientWidth - 4) / this.#width));
    this.#paper.replaceChildren(document.importNode(picture, true));
    for (const target of this.#targets) target.setAttribute("aria-label", this.#label(target));
    this.#lay();
    this.#show();
    if (hadFocus) this.focus();
  }

  // What has the focus, as arrow keys move it.
  get focused() {
    const target = document.activeElement.closest?.(".target");
    return target && this.#paper.contains(target) ? selectionOf(target) : null;
  }

  get hasFocus() {
    return this.#paper.contains(document.activeElement);
  }

  focus() {
    (this.#selected ?? this.#targets[0])?.focus({ preventScroll: true });
  }

  // Selects an element: {kind, key}, of transitions {kind, numbers}.
  select(selection, { focus = false } = {}) {
    this.#keep(selection);
    this.#show();
    if (focus) this.focus();
    this.dispatchEvent(new Event("selected"));
  }

  // The selection of an element stays the same object while the element is selected.
  #keep(selection) {
    const isSame = ["kind", "key", "numbers"].every((member) => String(selection[member]) === String(this.#selection[member]));
    if (!isSame) this.#selection = selection;
  }

  has(selection) {
    return this.#targets.some((target) => matches(target, selection));
  }

  // Marks elements with the worst level of what is found in them.
  mark(levels) {
    this.#levels = levels;
    this.#show();
  }

  zoom(direction) {
    this.#setScale(this.#scale * (direction > 0 ? STEP : 1 / STEP));
  }

  #setScale(scale) {
    this.#scale = Math.min(MOST, Math.max(LEAST, scale));
    this.#lay();
  }

  // Two fingers zoom the chart, not the page around it; one scrolls.
  #pinch(event) {
    if (event.touches.length !== 2) return;
    event.preventDefault();
    const [one, other] = event.touches;
    const apart = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    if (event.type === "touchstart") this.#apart = apart / this.#scale;
    else if (event.type === "touchmove") this.#setScale(apart / this.#apart);
  }

  get #targets() {
    return [...this.#paper.querySelectorAll(".target")];
  }

  get #selected() {
    return this.#targets.find((target) => matches(target, this.#selection));
  }

  #lay() {
    const picture = this.#paper.querySelector("svg");
    if (picture) picture.style.width = `${this.#width * this.#scale}px`;
  }

  #label(target) {
    const text = target.getAttribute("aria-label");
    return `${this.#names[target.dataset.kind] ?? ""} ${text}`.trim();
  }

  #show() {
    const targets = this.#targets;
    const chosen = this.#selected ?? targets[0];
    for (const target of targets) {
      target.setAttribute("aria-pressed", String(matches(target, this.#selection)));
      target.setAttribute("tabindex", target === chosen ? "0" : "-1");
      target.classList.remove("fault", "warning", "information");
      const level = keysOf(target).map((key) => this.#levels.get(key)).find(Boolean);
      if (level) target.classList.add(level);
    }
    this.#selected?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #click(event) {
    const target = event.target.closest(".target");
    this.select(target ? selectionOf(target) : { kind: "recipe" }, { focus: Boolean(target) });
    // Again on the same element: edit it.
    if (target && event.detail > 1) this.dispatchEvent(new Event("edit"));
  }

  #key(event) {
    const target = event.target.closest(".target");
    if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (direction) {
      event.preventDefault();
      const inside = event.key === "ArrowDown" && target.dataset.kind === "branch" && this.#firstOf(target.dataset.key);
      const next = this.#targets.find((other) => inside && other.dataset.key === inside) ?? neighbour(target, this.#targets, direction);
      if (next) this.select(selectionOf(next), { focus: true });
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.select(selectionOf(target), { focus: true });
      this.dispatchEvent(new Event("edit"));
    } else if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      const found = this.#targets.at(event.key === "Home" ? 0 : -1);
      this.select(selectionOf(found), { focus: true });
    }
  }
}

function selectionOf(target) {
  const { kind, key, source, target: to } = target.dataset;
  if (kind === "transition") return { kind, numbers: key.split(",").map(Number), source, target: to };
  return kind === "way" ? { kind, key, source, target: to } : { kind, key };
}

// A transition is the same while its first number is: it may be drawn together with others.
function matches(target, selection) {
  const { kind, key } = target.dataset;
  if (kind !== selection.kind) return false;
  return kind === "transition" ? key.split(",").map(Number).includes(selection.numbers[0]) : key === String(selection.key);
}

function keysOf(target) {
  const { kind, key } = target.dataset;
  return (kind === "transition" ? key.split(",") : [key]).map((part) => `${kind}:${part}`);
}

// Returns the nearest element in a direction; what stands in the same line or column is near.
function neighbour(from, targets, [across, down]) {
  const start = from.getBoundingClientRect();
  let best = null;
  let least = Infinity;
  for (const target of targets) {
    // Up and down the line of steps and transitions; actions stand at its side.
    if (target === from || (down && from.dataset.kind !== "action" && target.dataset.kind === "action")) continue;
    const box = target.getBoundingClientRect();
    const along = down ? down * (middle(box, "y") - middle(start, "y")) : across * (middle(box, "x") - middle(start, "x"));
    if (along <= NEAR) continue;
    const aside = down ? gap(start.left, start.right, box.left, box.right) : gap(start.top, start.bottom, box.top, box.bottom);
    const distance = along + (down ? 1 : ASIDE) * aside;
    if (distance < least) [best, least] = [target, distance];
  }
  return best;
}

function middle(box, axis) {
  return axis === "y" ? box.top + box.height / 2 : box.left + box.width / 2;
}

function gap(a, b, c, d) {
  return Math.max(0, c - b, a - d);
}
