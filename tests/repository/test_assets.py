"""What the pages load is pinned, fetched and served by the book itself."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
import yaml

from tools.book_pages import lightened

ROOT = Path(__file__).parents[2]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_pages_load_only_fetched_browser_code() -> None:
    fetch_assets = runpy.run_path(str(ROOT / "tools" / "fetch_assets.py"))
    config = yaml.safe_load(text_of("_config.yml"))["sphinx"]["config"]
    fetched_folder, own_folder = (ROOT / folder for folder in config["html_static_path"])
    assert fetched_folder == fetch_assets["ASSETS"]
    own = {*config["html_css_files"], *(name for name in config["html_js_files"] if isinstance(name, str))}
    widgets = set(config["nb_ipywidgets_js"])
    by_extensions = {
        name
        for path in (ROOT / "tools").glob("book_*.py")
        for name in re.findall(r"add_(?:js|css)_file\(\"([\w.]+)\"", path.read_text(encoding="utf-8"))
    }
    made = {"discs.js"}  # by tools/book_pages.py
    assert {path.name for path in own_folder.iterdir()} == own | by_extensions - made | {"local_widgets.js"}
    assert text_of("Makefile").count(f"ASSETS := _build/assets/{fetch_assets['STAMP']}\n") == 1
    fetched = {target for package in fetch_assets["PACKAGES"] for target in package.files.values()}
    assert {config["mathjax_path"], *widgets - {"local_widgets.js"}} <= fetched


def test_a_page_with_a_playground_loads_no_script_of_sliders() -> None:
    own = '<script src="../_static/local_widgets.js?v=1"></script>'
    page, sliders = own + '\n    <script src="../_static/widgets/embed.js?v=2"></script>', '"@jupyter-widgets/controls"'
    assert lightened(page + '"model_module": "anywidget"') == own + '"model_module": "anywidget"'
    assert lightened(f'{page}"model_module": {sliders}') == f'{page}"model_module": {sliders}'
    with pytest.raises(ValueError, match="part them"):
        lightened(f'"model_module": "anywidget" "model_module": {sliders}')


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for npm is a shell script")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'npm error code ENOTFOUND' >&2; exit 1", r"could not fetch mathjax@\S+ \(ENOTFOUND\)"),
        ("echo other > mathjax.tgz", "is not the pinned file"),
        (None, "install Node.js"),
    ],
    ids=["no network", "another file", "no npm"],
)
def test_assets_are_fetched_as_pinned_or_not_at_all(
    script: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = runpy.run_path(str(ROOT / "tools" / "fetch_assets.py"))["fetch"]
    if script is not None:
        (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=message):
        fetch(tmp_path / "build" / "assets")
    assert not list(tmp_path.glob("build/*"))
