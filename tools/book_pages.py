"""A Sphinx extension: a page loads what it uses and nothing else, and the scripts of the playground are served.

The theme writes two heavy things into every page. One is the script of Font Awesome, 1.5 MB, which redraws icons that
its font has drawn already; the other is Sphinx's index for its search, whose place tools/book_search.py has taken. And
a page with a playground needs nothing of the script of Jupyter's widgets, 1.9 MB: book/_static/local_widgets.js shows
it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from advdiff.viz.playground_graphs import example_graphs
from advdiff.viz.playground_widget import MODULES, SCRIPTS, joined

LANDING = "book/index"
DISCS = Path(__file__).resolve().parents[1] / "book" / "discs.js"
TYPE = ("serif", "sans")
_ICONS = re.compile(r"\s*<script[^>]*/fontawesome\.js[^>]*></script>|\s*<link[^>]*/fontawesome\.js[^>]*>")
_SEARCH = re.compile(r"\s*<script[^>]*/?(?:searchtools|language_data|searchindex)\.js[^>]*></script>")
_SLIDERS = re.compile(r"\s*<script[^>]*/widgets/embed\.js[^>]*></script>")


def lightened(text: str) -> str:
    """The page without the scripts that it has no use for."""
    text = _SEARCH.sub("", _ICONS.sub("", text))
    of = '"model_module": "{}"'.format
    has_sliders, has_playground = of("@jupyter-widgets/controls") in text, of("anywidget") in text
    if has_sliders and has_playground:
        raise ValueError(
            "a page has a playground and frames with sliders, whose script knows no playground; part them."
        )
    if not has_sliders:
        text = _SLIDERS.sub("", text)
    return text


def playground_script() -> str:
    """The playground with its style and its graphs as a classic script, which works from file:// as well."""
    style = json.dumps((SCRIPTS / "playground.css").read_text(encoding="utf-8"))
    parts = joined([SCRIPTS / f"{name}.js" for name in MODULES])
    given = f"{{ render, style: {style}, examples: {json.dumps(example_graphs())} }}"
    return f"window.advdiffPlayground = (() => {{\n{parts}\nreturn {given};\n}})();\n"


def discs_script() -> str:
    """The discs of the landing page with the numerics that they need, in a scope of their own."""
    parts = [*(SCRIPTS / f"{name}.js" for name in ("kernels", "graph", "colours")), DISCS]
    return f"(() => {{\n{joined(parts)}\n}})();\n"


def add_to_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The type of the text is fetched with the page, before it is asked for; the landing page gets its discs.

    Type that comes later moves lines: a bibliography is half in italics.
    """
    for name in (*TYPE, *(["serif-italic"] if "<em" in context.get("body", "") else [])):
        address = context["pathto"](f"_static/fonts/{name}.woff2", 1)
        context["metatags"] = context.get("metatags", "") + (
            f'<link rel="preload" href="{address}" as="font" type="font/woff2" crossorigin>'
        )
    if pagename == LANDING:
        app.add_js_file("discs.js", loading_method="defer")


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    (folder / "searchindex.js").unlink(missing_ok=True)
    (folder / "_static" / "playground.js").write_text(playground_script(), encoding="utf-8")
    (folder / "_static" / "discs.js").write_text(discs_script(), encoding="utf-8")
    for path in folder.rglob("*.html"):
        if "_static" not in path.relative_to(folder).parts:
            path.write_text(lightened(path.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", add_to_page)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
