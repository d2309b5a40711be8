"""The playground in a running JupyterLab: what moves in the page moves in Python, and back."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tools import built_book
from tools.chromium import Browser

CELLS = (
    "from advdiff import viz\nplayground = viz.playground()\nplayground",
    "print('beta in Python:', playground.beta)",
    "playground.beta = 2.25\nplayground.time = 0.5",
)


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a notebook in a JupyterLab of its own."""
    pytest.importorskip("jupyterlab")
    folder = tmp_path_factory.mktemp("lab")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, folder / "try.ipynb")
    port, token = free_port(), secrets.token_hex(16)
    paths = os.pathsep.join([str(built_book.ROOT), os.environ.get("PYTHONPATH", "")])
    homes = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {
        **os.environ,
        **homes,
        "PYTHONPATH": paths,
        "OMP_NUM_THREADS": "1",
        "IPYTHONDIR": str(folder / "ipython"),
    }
    options = {"port": port, "ip": "127.0.0.1", "open_browser": False, "allow_root": True, "root_dir": folder}
    command = [sys.executable, "-m", "jupyterlab", *(f"--ServerApp.{key}={value}" for key, value in options.items())]
    with (folder / "lab.log").open("wb") as log:
        command.append(f"--IdentityProvider.token={token}")
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                    f"{address}/api?token={token}", timeout=5
                )
                break
            except OSError:
                assert server.poll() is None, Path(folder / "lab.log").read_text()[-2000:]
                time.sleep(0.5)
        yield f"{address}/doc/tree/try.ipynb?token={token}"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def test_beta_moves_on_both_sides(browser: Browser, lab: str) -> None:
    driver = browser.driver
    browser.resize(1400, 1000)
    driver.get(lab)
    # Cells are drawn anew while the notebook opens.
    wait = WebDriverWait(driver, 180, ignored_exceptions=[WebDriverException])

    def find(selector: str) -> Any:
        return driver.find_element("css selector", selector)

    def run_cell(number: int) -> None:
        def enter(_: Any) -> bool:
            cells = driver.find_elements("css selector", ".jp-CodeCell .cm-content")
            if len(cells) <= number:
                return False
            browser.run("arguments[0].scrollIntoView({block: 'center'})", cells[number])
            cells[number].click()
            return True

        wait.until(enter)
        ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()

    def output(number: int) -> str:
        cell = driver.find_elements("css selector", ".jp-CodeCell")[number]
        return str(browser.run("return arguments[0].querySelector('.jp-OutputArea')?.innerText ?? ''", cell))

    idle = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
    wait.until(lambda _: browser.run(f"return !!document.querySelector('{idle}')"))
    run_cell(0)
    wait.until(lambda _: browser.run("return !!document.querySelector('.advdiff-playground')"))
    assert browser.run("return document.querySelector('.pg-canvas').dataset.values.split(' ').length") == 34

    field = find(".advdiff-playground input[type=number][data-key=beta]")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", field)
    field.click()
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "1.75", Keys.TAB)
    run_cell(1)
    wait.until(lambda _: "beta in Python: 1.75" in output(1))

    run_cell(2)
    shown = "return document.querySelector('.advdiff-playground input[type=range][data-key={}]').value"
    wait.until(lambda _: browser.run(shown.format("beta")) == "2.25" and browser.run(shown.format("time")) == "0.5")
    assert browser.run("return document.querySelector('.pg-canvas').toDataURL().length") > 2000
