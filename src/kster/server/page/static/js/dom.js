// Making and finding elements.

export const byId = (id) => document.getElementById(id);

/** An element. Attributes that are functions become listeners; null, undefined and false are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** An element of an SVG drawing. */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const button = (label, click, kind = "") =>
  element("button", { type: "button", class: `button ${kind}`, click }, label);

/** A `<select>`'s options: [[value, label], …]; keeps the chosen one where it still exists. */
export function setOptions(select, options, chosen = select.value) {
  select.replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
  if (options.some(([value]) => String(value) === String(chosen))) select.value = chosen;
}

/** Calls `act` once nothing has been asked for during `wait` milliseconds. */
export function debounced(act, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}
