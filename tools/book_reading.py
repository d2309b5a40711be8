"""A Sphinx extension: under the title of a chapter, where it stands in the book, and how much code it shows.

The switch has three positions: *story*, no code at all; *story + code*, what the chapter shows by itself; *everything*,
the folded cells open as well. The browser remembers it. `book/_static/reading.js` moves it; without scripts there is no
switch, and the chapter shows what it shows by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sphinx.application import Sphinx

from tools.book_numbers import chapter_of

# In the head, before anything is painted. A browser may forbid storage, for example for files.
REMEMBERED = """<script>
document.documentElement.dataset.reading = (() => {
  try { return /^(story|everything)$/.exec(localStorage.getItem("advdiff-reading"))?.[0] ?? "code"; }
  catch { return "code"; }
})();
</script>"""
POSITIONS = (
    ("story", "story", "no code, only the text and what came out"),
    ("code", "story + code", "the code that teaches; the rest is folded"),
    ("everything", "everything", "all folded cells are open"),
)


def ordinal(number: int) -> str:
    """
    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st']
    """
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def switch() -> str:
    """Three radio buttons, which every keyboard and every screen reader knows."""
    buttons = "".join(
        f'<label title="{title}"><input type="radio" name="reading" value="{value}"><span>{name}</span></label>'
        for value, name, title in POSITIONS
    )
    return f'<fieldset class="reading-switch"><legend>show</legend>{buttons}</fieldset>'


def bar(docname: str, chapters: Sequence[str]) -> str:
    """The line under the title: a thin one for the place in the book, words for it, and the switch."""
    place, count = chapters.index(docname) + 1, len(chapters)
    words = f"{ordinal(place)} of {count} chapters"
    return (
        f'<div class="reading-bar"><progress value="{place}" max="{count}" aria-label="place in the book"></progress>'
        f"<span>{words}</span>{switch()}</div>"
    )


def add_bar(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if not chapter_of(pagename) or app.builder.name != "html":
        return
    in_order = [name for name in app.env.collect_relations() if chapter_of(name)]
    context["body"] = context["body"].replace("</h1>", f"</h1>\n{bar(pagename, in_order)}", 1)
    context["metatags"] = context.get("metatags", "") + REMEMBERED
    app.add_css_file("reading.css")
    app.add_js_file("reading.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_bar)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
