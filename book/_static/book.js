// What neither the theme nor the widgets can be configured to do: names for those who cannot see the page, and type.
(() => {
  const words = text => text.replace(/\\[()]|[\\{}$]/g, "").trim(); // \(\beta\) is read as "beta"

  function nameWidgets() {
    for (const handle of document.querySelectorAll("[role=slider]:not([aria-label])")) {
      const label = handle.closest(".widget-slider")?.querySelector(".widget-label");
      handle.setAttribute("aria-label", words(label?.textContent ?? "") || "value");
    }
    // A frame cannot carry an alt text of its own. What it shows is said by the call that made it, in the folded code
    // above it (viz.frame_grid(…, alt="…")); where the sliders stand is added.
    for (const image of document.querySelectorAll(".cell_output .widget-image")) {
      const sliders = [...image.closest(".cell_output").querySelectorAll(".widget-slider")];
      const state = sliders.map(slider => {
        const name = slider.querySelector("[role=slider]")?.getAttribute("aria-label");
        return `${name} = ${slider.querySelector(".widget-readout")?.textContent.trim()}`;
      });
      const code = image.closest(".cell").querySelector(".cell_input pre")?.textContent ?? "";
      const said = code.match(/\balt=((?:\s*"[^"]*")+)/)?.[1].match(/"[^"]*"/g).map(part => part.slice(1, -1)).join("");
      image.alt = `${said ?? "Figure"}, at ${state.join(", ")}`;
    }
  }

  // What scrolls within its box must be reachable by keyboard.
  function reachBoxes() {
    for (const box of document.querySelectorAll("div.highlight pre, .cell_output .output, div.math"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }

  // Browsers break a line between a formula and the comma that follows it.
  function keepPunctuation() {
    for (const formula of document.querySelectorAll("span.math")) {
      const text = formula.nextSibling;
      const marks = text?.nodeType === Node.TEXT_NODE ? text.data.match(/^[,.;:!?)\u2019]+/) : null;
      if (!marks) continue;
      text.splitText(marks[0].length);
      const kept = document.createElement("span");
      kept.style.whiteSpace = "nowrap";
      formula.before(kept);
      kept.append(formula, text);
    }
  }

  // Nor shall a number and its unit part.
  function keepUnits() {
    const walker = document.createTreeWalker(document.querySelector(".bd-article") ?? document.body, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode())
      if (/\d (%|[GMk]?B\b|m?s\b)/.test(text.data) && !text.parentElement.closest("pre, code"))
        text.data = text.data.replace(/(\d) (?=%|[GMk]?B\b|m?s\b)/g, "$1\u00a0");
  }

  // Claims are plain text, as a notebook prints them: e^(-LT), z_u. On the page powers are raised and indices lowered.
  function typesetClaims() {
    const power = /\^(?:\(((?:[^()]|\((?:[^()]|\([^()]*\))*\)){2,})\)|(-?\([^()]*\)|\u2016\w\u2016|-?\w+(?:\/\d)?))/u;
    const index = /(?<=(?<![\p{L}\d])\p{L}|\u2016)_([\p{L}\d]{1,3}(?:-model|-label|,\d+)?)(?![\p{L}\d_])/u;
    const either = new RegExp(`${power.source}|${index.source}`, "gu");
    for (const cell of document.querySelectorAll("table.claims td, table.claims td *"))
      for (const text of [...cell.childNodes].filter(node => node.nodeType === Node.TEXT_NODE && node.data.search(either) >= 0)) {
        const parts = document.createElement("span");
        parts.innerHTML = text.data.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`).replace(either,
          (_, inner, bare, low) => low ? `<sub>${low}</sub>` : `<sup>${(inner ?? bare).replace(/-/g, "\u2212")}</sup>`);
        text.replaceWith(parts);
      }
  }

  // Formulas take more or less room than their source. So that nothing jumps under the eyes of who reads, the page is
  // shown when those of the first screen are typeset; the others follow. Fonts are not waited for longer than that.
  function typesetFirstScreen() {
    const root = document.documentElement, show = () => root.classList.remove("formulas-pending");
    root.classList.add("formulas-pending");
    setTimeout(show, 4000);
    const isNear = formula => formula.getBoundingClientRect().top < 1.3 * window.innerHeight;
    window.MathJax.startup = {
      ...window.MathJax.startup,
      pageReady: async () => {
        await window.MathJax.typesetPromise([...document.querySelectorAll(".math")].filter(isNear));
        await Promise.race([document.fonts.ready, new Promise(resolve => setTimeout(resolve, 300))]);
        show();
        await window.MathJax.typesetPromise();
      },
    };
  }
  if (window.MathJax && !window.MathJax.version) typesetFirstScreen();

  // Paper is light: figures, code and boxes of a dark page are printed in the colours of the light one.
  const root = document.documentElement;
  let shownTheme = "";
  window.addEventListener("beforeprint", () => {
    shownTheme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => root.dataset.theme = shownTheme);

  window.addEventListener("load", () =>
    (window.MathJax?.startup?.promise ?? Promise.resolve()).then(keepPunctuation).then(reachBoxes));
  document.addEventListener("DOMContentLoaded", () => {
    typesetClaims();
    keepUnits();
    // Here the visible text says more than the label that would replace it.
    for (const element of document.querySelectorAll(".cell summary, .search-button-field"))
      element.removeAttribute("aria-label");
    for (const summary of document.querySelectorAll(".bd-links .has-children > details > summary"))
      summary.setAttribute("aria-label", `Pages of ${summary.closest("li").querySelector("a").textContent.trim()}`);
    if (document.querySelector('[type="application/vnd.jupyter.widget-view+json"]'))
      new MutationObserver(nameWidgets).observe(document.body, { childList: true, subtree: true });
  });
})();
