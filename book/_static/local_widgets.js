// The playgrounds of a page. Jupyter's own script, which would run them too, weighs as much as all the rest of a page; it
// is loaded only where its sliders are (tools/book_pages.py). Loaded only on pages with widgets.
(() => {
  const here = document.currentScript.src;
  const load = name => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: new URL(name, here), onload: resolve, onerror: () => reject(new Error(`${name} did not load`)) });
    document.head.append(script);
  });

  /** What a widget gives to its view, without a kernel: values, and word of their changes. */
  class Model {
    heard = new EventTarget();
    constructor(values) {
      this.values = values;
    }
    get(key) {
      return this.values[key];
    }
    set(key, value) {
      if (this.values[key] === value) return;
      this.values[key] = value;
      this.heard.dispatchEvent(new Event(`change:${key}`));
    }
    save_changes() {}
    on(name, listener) {
      this.heard.addEventListener(name, listener);
    }
    off(name, listener) {
      this.heard.removeEventListener(name, listener);
    }
  }

  const textsOf = kind => [...document.querySelectorAll(`script[type="application/vnd.jupyter.widget-${kind}+json"]`)]
    .map(script => ({ script, saved: JSON.parse(script.textContent) }));

  document.addEventListener("DOMContentLoaded", async () => {
    const models = new Map(textsOf("state").flatMap(({ saved }) => Object.entries(saved.state))
      .filter(([, { state }]) => state._anywidget_id?.endsWith(".Playground")).map(([id, { state }]) => [id, new Model(state)]));
    if (!models.size) return;
    await load("playground.js");
    // Notebooks are saved without the script, the style and the graphs.
    const { render, style, examples } = window.advdiffPlayground;
    document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
    for (const { script, saved } of textsOf("view")) {
      const model = models.get(saved.model_id);
      if (!model) continue;
      model.values.examples = examples;
      const place = Object.assign(document.createElement("div"), { className: "widget-subarea" });
      script.before(place);
      render({ model, el: place });
    }
  });
})();
