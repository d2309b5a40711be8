// The switch under the title of a chapter: story, story + code, everything (tools/book_reading.py).
(() => {
  const root = document.documentElement, article = document.querySelector(".bd-article");
  const folded = () => article.querySelectorAll("div.cell details.hide.above-input");

  function show(position) {
    root.dataset.reading = position;
    for (const input of document.querySelectorAll(".reading-switch input")) input.checked = input.value === position;
  }

  function open(isOpen) {
    for (const cell of folded()) cell.open = isOpen;
  }

  // What the reader looks at stays where it is, though code above it comes or goes.
  function keepPlace(change) {
    const kept = [...article.querySelectorAll("h2, h3, p, figure, div.math")]
      .find(element => !element.closest("details") && element.getBoundingClientRect().top >= 0);
    const before = kept?.getBoundingClientRect().top;
    change();
    if (kept && window.scrollY > 0) window.scrollBy({ top: kept.getBoundingClientRect().top - before, behavior: "instant" });
  }

  document.querySelector(".reading-switch").addEventListener("change", ({ target }) => {
    keepPlace(() => {
      show(target.value);
      open(target.value === "everything");
    });
    try {
      localStorage.setItem("advdiff-reading", target.value);
    } catch {} // then it is not remembered
  });

  show(root.dataset.reading);
  if (root.dataset.reading === "everything") open(true);

  // Paper shows what the chapter shows by itself.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = root.dataset.reading === "everything" ? [...folded()].filter(cell => cell.open) : [];
    for (const cell of opened) cell.open = false;
  });
  window.addEventListener("afterprint", () => opened.forEach(cell => cell.open = true));
})();
