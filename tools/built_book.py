"""The built book as files: its pages, their links, and a server of the folder for the browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
REDIRECT = re.compile(r'<meta http-equiv="Refresh" content="0; url=([^"]+)"')
# The pages that are read; the templates in _static are for Sphinx itself.
FILES = sorted(path for path in HTML.rglob("*.html") if "_static" not in path.relative_to(HTML).parts)
PAGES = [str(path.relative_to(HTML)) for path in FILES if not REDIRECT.match(path.read_text(encoding="utf-8"))]


class Page(HTMLParser):
    """What a page can be linked to by, and what it refers to."""

    REFERENCES = (("a", "href"), ("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := attributes.get(key))}
        for name, key in self.REFERENCES:
            if tag == name and (value := attributes.get(key)):
                self.references.append((tag, value))

    handle_startendtag = handle_starttag


@cache
def parse(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def is_internal(reference: str) -> bool:
    parts = urlsplit(reference)
    return not parts.scheme and not parts.netloc


def target_of(page: Path, reference: str) -> tuple[Path, str]:
    """The file and the anchor that a reference of `page` means."""
    parts = urlsplit(reference)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return (path / "index.html" if path.is_dir() else path), unquote(parts.fragment)


def is_anchor(anchor: str, page: Path) -> bool:
    """Whether the anchor is a place of the page, or what the playground on it is set to."""
    return anchor in parse(page).anchors or (anchor.startswith("playground:") and page.stem == "playground")


def broken_links(page: Path) -> list[str]:
    """The references of a page within the book that lead nowhere."""
    broken = []
    for _, reference in parse(page).references:
        if not is_internal(reference):
            continue
        path, anchor = target_of(page, reference)
        if not path.is_file():
            broken.append(f"{reference}: no such file")
        elif anchor and path.suffix == ".html" and not is_anchor(anchor, path):
            broken.append(f"{reference}: no such anchor")
    return broken


def weight(page: Path) -> int:
    """Bytes of a page and its pictures; scripts, style and fonts are those of every page, fetched once."""
    sources = [source for tag, source in parse(page).references if tag == "img" and is_internal(source)]
    files = {page, *(target_of(page, source)[0] for source in sources)}
    return sum(path.stat().st_size for path in files if path.is_file())


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path = HTML) -> Iterator[str]:
    """The address of a server of the folder on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
