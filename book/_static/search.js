// The search of the book, over the entries of tools/book_search.py: sections, theorems, words, claims, names of the code.
(() => {
  const { synonyms, entries } = window.bookSearch;
  const field = document.querySelector(".bd-search-container input[name=q]");
  const place = document.getElementById("search-results");
  const FIRST = 20, LENGTH = 190; // results at once; letters of an excerpt
  const DEFINING = new Set(["term", "definition", "theorem", "lemma", "proposition", "corollary"]);
  const NAMES = { code: "library", term: "glossary" };

  // A hyphen, a plural, -ise or -ize, -our or -or make no other word: "oversmoothing" finds "over-smoothing".
  const escape = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const bare = word => word.replace(/[-\u2010\u2011]/g, "").replace(/(?<=\w{3}[^s])s$/, "");
  function pattern(phrase) {
    const words = phrase.split(/\s+/).map(word => [...bare(word)].map(escape).join("[-\u2010\u2011]?")
      .replace(/i(\[[^\]]*\]\?)[sz](?=\1[aei])/g, "i$1[sz]").replace(/o(\[[^\]]*\]\?)(?:u\1)?r/g, "o$1u?$1r"));
    return `(?<![\\p{L}\\d])${words.join("[-\\s]+")}`;
  }

  /** One expression for each word of the question, which finds its synonyms as well. */
  function expressions(question) {
    let rest = ` ${question.toLowerCase().trim().replace(/\s+/g, " ")} `;
    const found = [];
    for (const group of synonyms)
      for (const phrase of group)
        if (rest.includes(` ${phrase} `) || rest.replace(/-/g, "").includes(` ${phrase} `)) {
          rest = rest.replace(/-/g, "").replace(` ${phrase} `, " ");
          found.push(group);
          break;
        }
    const groups = [...found, ...rest.split(" ").filter(Boolean).map(word => [word])];
    return groups.map(group => new RegExp(group.map(pattern).join("|"), "giu"));
  }

  const count = (text, expression) => text.match(expression)?.length ?? 0;

  /** How well an entry answers, or 0. What defines a word comes before what is about it, and that before what names it. */
  function score({ kind, title, page, text }, wanted, question) {
    const name = kind === "code" ? title.split(".").at(-1) : title;
    const inTitle = wanted.map(expression => count(name, expression));
    const inText = wanted.map(expression => count(text, expression));
    const inPage = wanted.map(expression => count(page, expression));
    if (wanted.some((_, k) => inTitle[k] + inText[k] + inPage[k] === 0)) return 0;
    if (wanted.every((_, k) => inTitle[k] + inText[k] === 0)) return 0; // a section of a page that is called so
    const isTitled = inTitle.every(Boolean), isExact = name.toLowerCase() === question.toLowerCase().trim();
    const isSection = kind === "page" || kind === "section";
    const tier = isExact ? 6 : isTitled && DEFINING.has(kind) ? 5 : isTitled && isSection ? 4
      : DEFINING.has(kind) ? 3 : isSection ? 2 : 1;
    // Often in a short text says more than often in a long one, and a word that is the title more than one of many.
    const often = inText.reduce((sum, times) => sum + Math.log1p(times), 0) / (1 + Math.log1p(text.length / 500));
    return 100 * tier + often + (isTitled ? 100 / (10 + name.length) : 0);
  }

  const HTML = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const shown = text => text.replace(/[&<>]/g, sign => HTML[sign])
    .replace(/([\^_])\(([^()]*)\)/g, (_, sign, inner) => sign === "^" ? `<sup>${inner}</sup>` : `<sub>${inner}</sub>`);

  function marked(text, wanted) {
    const any = new RegExp(wanted.map(({ source }) => `(?:${source})[\\p{L}\\d]*`).join("|"), "giu");
    let html = "", done = 0;
    for (const hit of text.matchAll(any)) {
      html += `${shown(text.slice(done, hit.index))}<mark>${shown(hit[0])}</mark>`;
      done = hit.index + hit[0].length;
    }
    return html + shown(text.slice(done));
  }

  /** A piece of the text around the first hit, from word to word. */
  function excerpt(text, wanted) {
    const hits = wanted.map(expression => text.search(expression)).filter(at => at >= 0);
    const first = hits.length ? Math.min(...hits) : 0;
    let start = first < LENGTH / 2 ? 0 : text.lastIndexOf(" ", first - LENGTH / 3) + 1;
    let end = text.length <= start + LENGTH ? text.length : text.lastIndexOf(" ", start + LENGTH);
    return `${start > 0 ? "… " : ""}${marked(text.slice(start, end), wanted)}${end < text.length ? " …" : ""}`;
  }

  function item({ kind, title, page, address, text }, wanted) {
    const result = document.createElement("li");
    const about = [NAMES[kind] ?? kind, ...(kind === "term" || page === title ? [] : [page])].join(" · ");
    result.innerHTML = `<a href="${encodeURI(address)}">${marked(title, wanted)}</a> <span class="kind">${shown(about)}</span>`
      + `<p>${excerpt(text, wanted)}</p>`;
    return result;
  }

  function search() {
    const question = field.value, wanted = expressions(question);
    const found = !wanted.length ? [] : entries
      .map(([kind, title, page, address, text]) => ({ kind, title, page, address, text }))
      .map(entry => ({ entry, points: score(entry, wanted, question) }))
      .filter(({ points }) => points > 0).sort((a, b) => b.points - a.points);
    const said = Object.assign(document.createElement("p"), { role: "status" });
    said.textContent = !wanted.length ? "" : found.length ? `${found.length} places` : `Nothing is said of “${question}”.`;
    const list = document.createElement("ol");
    const more = Object.assign(document.createElement("button"), { type: "button", textContent: "More", className: "btn" });
    function add() {
      const next = found.slice(list.children.length, list.children.length + FIRST);
      list.append(...next.map(({ entry }) => item(entry, wanted)));
      more.hidden = list.children.length >= found.length;
    }
    more.addEventListener("click", () => {
      const before = list.children.length;
      add();
      list.children[before].querySelector("a").focus();
    });
    add();
    place.replaceChildren(said, list, more);
  }

  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", field.value ? `?q=${encodeURIComponent(field.value)}` : location.pathname);
      search();
    }, 150);
  });
  field.form.addEventListener("submit", event => {
    event.preventDefault();
    search();
  });
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  search();
})();
