"""The README's table of faults is that of one whole run, of the tests that there are."""

from __future__ import annotations

import json
import subprocess
import sys

from tools import fault_table

KEPT = json.loads(fault_table.KEPT.read_text(encoding="utf-8"))


def test_the_readme_shows_the_table_of_the_run() -> None:
    text = fault_table.README.read_text(encoding="utf-8")
    assert fault_table.table(KEPT) in text
    assert fault_table.with_table(text, fault_table.table(KEPT)) == text


def test_the_run_is_of_the_scenarios_that_there_are() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:nbval", "-p", "no:cacheprovider"]
    listed = subprocess.run(
        [*command, "tests/faults"], cwd=fault_table.ROOT, capture_output=True, text=True, check=True
    )
    found = {line.rpartition("tests/faults/")[2] for line in listed.stdout.splitlines() if "::" in line}
    assert found == set(KEPT), "run `make faults`, then: python -m tools.fault_table --write"


def test_every_scenario_is_in_a_row_and_survived() -> None:
    assert {test.partition("::")[0] for test in KEPT} == {f"test_{name}.py" for name in fault_table.ROWS}
    assert all(tried == survived > 0 for tried, survived in KEPT.values())


def test_what_a_run_may_not_show() -> None:
    kept = {"test_files.py::a": [3, 3]}
    assert fault_table.trouble({"test_files.py::a": [3, 3]}, kept) == []
    assert fault_table.trouble({"test_files.py::a": [3, 2]}, kept) == ["test_files.py::a: not survived"]
    assert "another number" in fault_table.trouble({"test_files.py::a": [2, 2]}, kept)[0]
    assert "is new" in fault_table.trouble({"test_files.py::a": [3, 3], "test_files.py::b": [1, 1]}, kept)[0]
