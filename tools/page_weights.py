"""Weigh every page of the built book, and measure how far it jumps while it loads.

    python -m tools.page_weights                  all pages of _build/html
    python -m tools.page_weights --site FOLDER    those of another build

The weight is what Chromium fetches for one page with an empty cache, uncompressed, the page itself included. The
layout shift is the cumulative layout shift (CLS) of a desktop window from the first paint until the page is at rest.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tools import built_book, chromium

MEGABYTE = 1_000_000
# Shifts within half a second of a key or a click are meant and do not count.
LAYOUT_SHIFT = """
const done = arguments[arguments.length - 1];
let sum = 0;
new PerformanceObserver(list => {
  for (const shift of list.getEntries()) if (!shift.hadRecentInput) sum += shift.value;
}).observe({type: "layout-shift", buffered: true});
setTimeout(() => done(sum), 500);
"""


class Measured(NamedTuple):
    page: str
    bytes: int
    shift: float
    kinds: dict[str, int]  # bytes by the ending of the file's name


def measure(browser: chromium.Browser, page: str) -> Measured:
    browser.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    try:
        browser.open(page)
        shift = browser.driver.execute_async_script(LAYOUT_SHIFT)
    finally:
        browser.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})
    addresses: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    for event in browser.events:
        params = event["params"]
        if event["method"] == "Network.requestWillBeSent":
            addresses[params["requestId"]] = params["request"]["url"]
        elif event["method"] == "Network.loadingFinished":
            address = urlsplit(addresses.get(params["requestId"], ""))
            if address.scheme.startswith("http"):
                kinds[Path(address.path).name] += int(params["encodedDataLength"])
    return Measured(page, sum(kinds.values()), float(shift), dict(kinds))


def main() -> None:
    parser = argparse.ArgumentParser(description="Weights and layout shifts of the pages of the built book.")
    parser.add_argument("--site", type=Path, default=built_book.HTML, help="folder of the built book")
    parser.add_argument("--files", action="store_true", help="name the heaviest files of each page")
    arguments = parser.parse_args()
    pages = [page for page in built_book.PAGES if (arguments.site / page).is_file()]
    if not pages:
        parser.exit(1, "There is no built book: run `make book` first.\n")
    with built_book.serve(arguments.site) as address, chromium.start(address) as browser:
        rows = [measure(browser, page) for page in pages]
    for row in sorted(rows, key=lambda row: -row.bytes):
        print(f"{row.bytes / MEGABYTE:6.2f} MB  shift {row.shift:.3f}  {row.page}")
        if arguments.files:
            heaviest = sorted(row.kinds.items(), key=lambda item: -item[1])[:8]
            print("           " + ", ".join(f"{name} {size / MEGABYTE:.2f}" for name, size in heaviest))
    weights, shifts = [row.bytes / MEGABYTE for row in rows], [row.shift for row in rows]
    print(
        f"{len(rows)} pages: median {statistics.median(weights):.2f} MB, heaviest {max(weights):.2f} MB; "
        f"layout shift median {statistics.median(shifts):.3f}, largest {max(shifts):.3f}"
    )


if __name__ == "__main__":
    main()
