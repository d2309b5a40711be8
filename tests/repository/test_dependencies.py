"""pyproject.toml, constraints.txt, environment.yml and the Makefile agree on what is installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import lock

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def constraints(python: str) -> dict[str, str]:
    """The pins of constraints.txt that apply to a version of Python."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    pins: dict[str, str] = {}
    for line in text_of("constraints.txt").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(environment):
            name = canonicalize_name(pin.name)
            assert re.fullmatch(r"==[^*+,]+", str(pin.specifier)), f"not an exact, public version: {line}"
            assert name not in pins, f"{name} is pinned twice for Python {python}"
            pins[name] = str(pin.specifier).removeprefix("==")
    return pins


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned_within_its_bounds(python: str) -> None:
    pins = constraints(python)
    for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in constraints.txt"
        assert requirement.specifier.contains(pins[name], prereleases=True), f"{line}, pinned {pins[name]}"


def test_environment_yml_installs_the_same_thing() -> None:
    entries = yaml.safe_load(text_of("environment.yml"))["dependencies"]
    (pip,) = (entry["pip"] for entry in entries if isinstance(entry, dict))
    conda = dict(entry.partition("=")[::2] for entry in entries if isinstance(entry, str))

    assert conda.keys() == {"python", "pip", "make", "nodejs"}, "everything else comes through constraints.txt"
    assert conda["python"] in PYTHONS
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(conda["python"])
    assert pip == ["-c constraints.txt", "-e .[book,test,data]"], "a second index could serve any of the packages"


def test_the_lock_has_every_extra_but_npm() -> None:
    assert {*lock.EXTRAS, "npm"} == set(EXTRAS), "npm is installed only where the system has none"


def test_the_lock_holds_the_pins_with_hashes() -> None:
    """All that is pinned but torch, whose hash depends on where it comes from."""
    text = text_of("requirements.lock").replace("\\\n", " ")
    locked = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(locked) > 150 and all(re.search(r"--hash=sha256:[0-9a-f]{64}", line) for line in locked)
    pins = {line.split(" ")[0] for line in text_of("constraints.txt").splitlines() if not line.startswith("#")}
    build = {canonicalize_name(Requirement(lock.BUILD.strip()).name)}
    versions = {line.split(" ")[0] for line in locked if line.split("==")[0] not in build}
    assert versions <= pins, f"run python -m tools.lock: {sorted(versions - pins)}"
    assert not any(lock.WITHOUT.match(line) for line in locked)
    names = {line.split("==")[0] for line in locked}
    for each in [*PROJECT["dependencies"], *(line for extra in lock.EXTRAS for line in EXTRAS[extra])]:
        name = canonicalize_name(Requirement(each).name)
        assert name in names or name == "torch", f"{name} is not in requirements.lock: run python -m tools.lock"


def test_make_installs_by_the_lock() -> None:
    assert "pip install --no-deps --require-hashes -r requirements.lock" in text_of("Makefile")
