// Elements of the page, and text that is written only where it changed.

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} children @returns {any} */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key === "html") element.innerHTML = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false) element.setAttribute(key, value === true ? "" : value);
  element.append(...children);
  return element;
}

/** What each element was last given: a frame that changes nothing costs no layout. @type {WeakMap<Element, string>} */
const written = new WeakMap();

/** @param {Element} element @param {string} html */
export function write(element, html) {
  if (written.get(element) === html) return;
  written.set(element, html);
  element.innerHTML = html;
}
