"""Headless Chromium in which no other host exists, and the log of what a page asked for."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from websocket import create_connection

DESKTOP = (1400, 1000)
PHONE = (390, 844)

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
OPTIONS = (
    "--headless=new",
    "--no-proxy-server",  # a proxy would look up the names instead of the rules below
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    f"--window-size={DESKTOP[0]},{DESKTOP[1]}",
)

# The page is ready when formulas are typeset, widgets drawn, images and fonts there, or did not come in time.
READY = """
const done = arguments[arguments.length - 1], end = Date.now() + 20000;
const views = 'script[type="application/vnd.jupyter.widget-view+json"]';
const drawn = script => script.parentElement.querySelector(".jupyter-widgets, .advdiff-playground");
(async () => {
  if (window.MathJax?.startup) await MathJax.startup.promise;
  while (![...document.querySelectorAll(views)].every(drawn) && Date.now() < end)
    await new Promise(resolve => setTimeout(resolve, 50));
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map(image => image.decode().catch(() => 0)));
  await document.fonts.ready;
  done(true);
})();
"""


def find_browser() -> str | None:
    """The browser's path, if its driver is there as well."""
    found = [path for name in NAMES if (path := shutil.which(name))] + [MAC] * Path(MAC).exists()
    return found[0] if found and shutil.which("chromedriver") else None


class Browser:
    """One session of Chromium: opens pages, runs scripts in them, and says what went over the wire."""

    def __init__(self, driver: Chrome, site: str) -> None:
        self.driver = driver
        self.site = site
        self.events: list[dict[str, Any]] = []
        self.console: list[str] = []

    def open(self, page: str) -> None:
        """Load a page of the book in a desktop window and wait until it is complete."""
        self.resize(*DESKTOP)
        self.driver.get("about:blank")
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(f"{self.site}/{page}")
        self.driver.execute_async_script(READY)
        self.console = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        self.events = [message for message in messages if message["method"].startswith("Network.")]

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def set_theme(self, theme: str) -> None:
        """Light or dark, at once: some buttons fade from one to the other, and would be looked at half-way."""
        self.run("for (const key of ['theme', 'mode']) document.documentElement.dataset[key] = arguments[0]", theme)
        self.run("for (const fade of document.getAnimations()) if (fade instanceof CSSTransition) fade.finish()")

    def requests(self) -> list[str]:
        """The addresses that the page asked for, those inside the page itself left out."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        addresses = [params["request"]["url"] for params in sent]
        return [address for address in addresses if urlsplit(address).scheme not in ("data", "blob", "about")]

    def failures(self) -> list[str]:
        """The requests without an answer, or with that of an error."""
        failed, addresses = [], {}
        for event in self.events:
            params = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                addresses[params["requestId"]] = params["request"]["url"]
            elif event["method"] == "Network.loadingFailed" and not params.get("canceled"):
                failed.append(f"{addresses.get(params['requestId'])}: {params['errorText']}")
            elif event["method"] == "Network.responseReceived" and params["response"]["status"] >= 400:
                failed.append(f"{params['response']['url']}: {params['response']['status']}")
        return failed


class Trace:
    """Chromium's own record of what it did, from the first moment until :meth:`stop`; over a line of its own."""

    def __init__(self, browser: Browser, categories: str) -> None:
        address = browser.driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urlopen(f"http://{address}/json/version") as answer:
            line = json.load(answer)["webSocketDebuggerUrl"]
        self._line = create_connection(line, suppress_origin=True, timeout=60)
        self._send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": _only(categories)})
        self._wait_for(lambda message: message.get("id") == 1)

    def _send(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._line.send(json.dumps({"id": 1, "method": method, "params": params or {}}))

    def _wait_for(self, condition: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        messages = [json.loads(self._line.recv())]
        while not condition(messages[-1]):
            messages.append(json.loads(self._line.recv()))
        return messages

    def stop(self) -> list[dict[str, Any]]:
        """The events, each with its name and its time ``ts`` in microseconds."""
        self._send("Tracing.end")
        messages = self._wait_for(lambda message: message.get("method") == "Tracing.tracingComplete")
        self._line.close()
        parts = [message["params"]["value"] for message in messages if message.get("method") == "Tracing.dataCollected"]
        return [event for part in parts for event in part]


def _only(categories: str) -> dict[str, Any]:
    return {
        "recordMode": "recordContinuously",
        "includedCategories": categories.split(","),
        "excludedCategories": ["*"],
    }


@contextmanager
def start(site: str) -> Iterator[Browser]:
    options = ChromeOptions()
    path = find_browser()
    assert path is not None
    options.binary_location = path
    for option in OPTIONS:
        options.add_argument(option)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium refuses to run as root otherwise
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(60)
    driver.set_page_load_timeout(60)
    try:
        yield Browser(driver, site)
    finally:
        driver.quit()
