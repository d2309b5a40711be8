// The page of claims: choose by verdict, by section of the paper, by who says it. Without this script all are listed.
(() => {
  const claims = [...document.querySelectorAll("table.claims tbody tr")].map(row => {
    const [, where, , , verdict] = row.cells;
    const section = where.textContent.match(/^\s*((?:Section|Appendix) [\w.]*\w)/)?.[1] ?? "";
    return {
      row, section, verdict: verdict.querySelector("strong").textContent, mark: verdict.textContent.trim(),
      paper: section ? "the paper" : "this book",
      square: document.querySelector(`.inline-svg a[href="#${row.querySelector("[id^=claim-]").id}"]`),
    };
  });
  const sections = [...new Set(claims.map(claim => claim.section))].filter(Boolean)
    .sort((a, b) => b[0].localeCompare(a[0]) || a.localeCompare(b, "en", { numeric: true }));
  const kinds = {
    verdict: ["verdict", "all", [...new Map(claims.map(({ verdict, mark }) => [verdict, mark])).entries()].sort()],
    section: ["place in the paper", "all", sections.map(value => [value, value])],
    paper: ["said by", "both", [["the paper", "the paper"], ["this book", "this book"]]],
  };

  const bar = document.createElement("form");
  bar.className = "claims-filters";
  const chosen = new URLSearchParams(location.search);
  for (const [key, [title, all, values]] of Object.entries(kinds)) {
    const select = document.createElement("select");
    select.name = key;
    select.append(new Option(all, ""), ...values.map(([value, words]) => new Option(words, value)));
    select.value = chosen.get(key) ?? "";
    if (select.selectedIndex < 0) select.value = ""; // an address may ask for what there is not
    const label = document.createElement("label");
    label.append(title, select);
    bar.append(label);
  }
  const count = document.createElement("output");
  bar.append(count);
  document.querySelector(".inline-svg").closest("figure").before(bar);

  function filter() {
    const wanted = [...new FormData(bar)].filter(([, value]) => value);
    for (const claim of claims) {
      const isLeftOut = wanted.some(([key, value]) => claim[key] !== value);
      for (const element of [claim.row, claim.square]) element?.classList.toggle("left-out", isLeftOut);
    }
    for (const table of document.querySelectorAll("table.claims"))
      table.closest("section").classList.toggle("left-out", !table.querySelector("tbody tr:not(.left-out)"));
    count.value = `${claims.filter(({ row }) => !row.classList.contains("left-out")).length} of ${claims.length} claims`;
    const query = new URLSearchParams(wanted).toString();
    history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
  }

  // A link to a claim that is left out shows all claims again.
  function find() {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("tr, section");
    if (!row?.matches(".left-out, .left-out *")) return;
    for (const select of bar.elements) select.value = "";
    filter();
    row.scrollIntoView();
  }

  bar.addEventListener("change", filter);
  bar.addEventListener("submit", event => event.preventDefault());
  window.addEventListener("hashchange", find);
  filter();
  find();
})();
