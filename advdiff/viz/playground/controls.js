// The controls of the playground: sliders, choices and buttons.
import { make } from "./elements.js";

/** @typedef {"beta" | "time" | "theta" | "order" | "layers"} Key */

/**
 * A slider and a field for the same number.
 * @param {import("./session.js").Session} session @param {(key: Key, value: number) => void} onchange @param {Key} key
 * @param {string} symbol @param {string} word @param {number} low @param {number} high @param {number} step
 */
export function slider(session, onchange, key, symbol, word, low, high, step) {
  const set = (/** @type {Event} */ event) => {
    const value = Number(/** @type {HTMLInputElement} */ (event.target).value);
    if (/** @type {HTMLInputElement} */ (event.target).value !== "" && Number.isFinite(value)) onchange(key, Math.max(low, Math.min(high, value)));
  };
  const range = make("input", { type: "range", min: low, max: high, step, "aria-label": word, "data-key": key, oninput: set });
  const field = make("input", { type: "number", min: low, max: high, step, "aria-label": `${word}, as a number`, "data-key": key, onchange: set });
  const show = () => {
    const value = Number(session.state[key].toFixed(6));
    range.value = String(value);
    range.style.setProperty("--pg-share", `${((value - low) / (high - low)) * 100}%`);
    if (document.activeElement !== field) field.value = String(value);
  };
  return { row: make("div", { class: "pg-slider" }, make("span", { class: "pg-symbol", html: symbol, "aria-hidden": "true" }), range, field), show };
}

/** A choice; its label leads to it by the id. */
export function select(/** @type {string} */ id, /** @type {string} */ label, /** @type {[string, string][]} */ options, /** @type {(value: string) => void} */ onchange) {
  const box = make("select", { id, onchange: (/** @type {Event} */ event) => onchange(/** @type {HTMLSelectElement} */ (event.target).value) },
    ...options.map(([value, text]) => make("option", { value }, text)));
  return { box, row: make("label", { class: "pg-select", for: box.id }, make("span", {}, label), box) };
}

export function button(/** @type {string} */ text, /** @type {() => void} */ onclick, /** @type {Record<string, any>} */ more = {}) {
  return make("button", { type: "button", onclick, ...more }, text);
}

/** A button that lets the time run, a unit a second up to the longest, and again from 0. */
export function playerOf(/** @type {() => number} */ timeNow, /** @type {number} */ longest, /** @type {(time: number) => void} */ onchange) {
  let playing = 0;
  const box = button("Play", () => (playing ? stop() : play()), { class: "pg-play" });
  function play() {
    const from = timeNow() >= longest - 0.01 ? 0 : timeNow(), began = performance.now();
    box.textContent = "Pause";
    const tick = (/** @type {number} */ now) => {
      const time = Math.min(longest, from + Math.max(0, now - began) / 1000);
      onchange(time);
      if (time >= longest) stop();
      else playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
  }
  function stop() {
    cancelAnimationFrame(playing);
    playing = 0;
    box.textContent = "Play";
  }
  return { button: box, stop };
}
