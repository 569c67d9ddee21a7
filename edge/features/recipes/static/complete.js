// Offers words below a field while a person types: arrows choose, Enter or Tab takes, Escape closes.

const MOST = 40;
let number = 0;

// `offer(text, caret)` returns {from, items: [{text, hint}]}: what may stand from there to the caret.
export function complete(field, offer) {
  const list = document.createElement("ul");
  list.className = "offers";
  list.id = `offers-${++number}`;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", field.getAttribute("aria-label") ?? field.name);
  list.hidden = true;
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", "false");
  field.autocomplete = "off";
  field.after(list);
  let from = 0;
  let to = 0;
  let chosen = -1;

  const close = () => {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };

  const open = (isAsked = false) => {
    const caret = field.selectionStart ?? field.value.length;
    const found = offer(field.value, caret);
    const typed = field.value.slice(found.from, caret);
    const items = found.items.filter((item) => item.text !== typed).slice(0, MOST);
    // Where no word has begun nothing covers what stands below, unless it is asked for.
    const isWanted = typed || isAsked === true || !field.value.trim() || field.tagName === "INPUT";
    if (!isWanted || !items.length || document.activeElement !== field) return close();
    [from, to, chosen] = [found.from, caret, -1];
    list.replaceChildren(...items.map((item, place) => optionOf(item, `${list.id}-${place}`)));
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
  };

  const choose = (place) => {
    const options = [...list.children];
    chosen = (place + options.length) % options.length;
    for (const [other, option] of options.entries()) option.setAttribute("aria-selected", String(other === chosen));
    options[chosen].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", options[chosen].id);
  };

  const take = (option) => {
    field.setRangeText(option.dataset.text, from, to, "end");
    close();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };

  for (const name of ["input", "focus", "click"]) field.addEventListener(name, () => open());
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (list.hidden) {
      const isAsked = event.key === "ArrowDown" && (field.tagName === "INPUT" || event.altKey);
      if (!isAsked) return;
      open(true);
      event.preventDefault();
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") choose(chosen < 0 && event.key === "ArrowUp" ? -1 : chosen + (event.key === "ArrowDown" ? 1 : -1));
    else if (event.key === "Escape") close();
    else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) take(list.children[chosen]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  // Not a click: the field keeps the focus.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("li");
    if (option) take(option);
  });
}

function optionOf({ text, hint }, id) {
  const option = document.createElement("li");
  option.id = id;
  option.dataset.text = text;
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  option.append(text);
  if (hint) {
    const small = document.createElement("small");
    small.textContent = hint;
    option.append(small);
  }
  return option;
}

// What fits to typed letters: what begins with them first, then what contains them.
export function fitting(items, typed) {
  const low = typed.toLowerCase();
  const begins = items.filter((item) => item.text.toLowerCase().startsWith(low));
  return [...begins, ...items.filter((item) => !begins.includes(item) && item.text.toLowerCase().includes(low))];
}
