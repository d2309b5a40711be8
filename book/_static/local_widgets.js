// Widgets that the script of Jupyter's widgets does not bring along: anywidget and the playground, served by the book.
// Loaded before widgets/embed.js, and only on pages with widgets.
(() => {
  const here = document.currentScript.src;
  const load = name => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: new URL(name, here), onload: resolve, onerror: () => reject(new Error(`${name} did not load`)) });
    document.head.append(script);
  });

  // embed.js asks for a module by name (tools/fetch_assets.py); anywidget is one for AMD.
  let anywidget;
  window.loadWidgetModule = (manager, name) => {
    if (name !== "anywidget") return Promise.reject(new Error(`The book has no widgets of ${name}.`));
    anywidget ??= (async () => {
      const parts = ["DOMWidgetModel", "DOMWidgetView"];
      const classes = await Promise.all(parts.map(part => manager.loadClass(part, "@jupyter-widgets/base", "2.0.0")));
      let made;
      window.define = (_, factory) => {
        made = factory(Object.fromEntries(parts.map((part, k) => [part, classes[k]])));
      };
      await load("widgets/anywidget.js").finally(() => delete window.define);
      return made;
    })();
    return anywidget;
  };

  // Notebooks are saved without the script and the graphs of the playground; here they are put back, before embed.js
  // reads the state.
  document.addEventListener("DOMContentLoaded", async () => {
    for (const script of document.querySelectorAll('script[type="application/vnd.jupyter.widget-state+json"]')) {
      const saved = JSON.parse(script.textContent);
      const own = Object.values(saved.state).filter(({ state }) => state._anywidget_id?.endsWith(".Playground"));
      if (!own.length) continue;
      if (!window.advdiffPlayground) await load("playground.js");
      for (const { state } of own) Object.assign(state, window.advdiffPlayground);
      script.textContent = JSON.stringify(saved);
    }
  });
})();
