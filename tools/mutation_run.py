"""Tries mutants of ``tools/mutants.json``, each in a copy of the repository; see :mod:`tools.mutate`."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tools import forked_pytest

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "_build" / "mutants.jsonl"
SUMMARY = ROOT / "tools" / "mutants_found.json"
ROOMS = ("datasets", "operators", "propagation", "theory", "nn", "experiments", "results")
#: Groups of tests, in the order in which data flow.
GROUPS = (*ROOMS, "viz", "bench", "cli", "distributed", "faults")
#: What tests of several groups use.
SHARED = ("tests/conftest.py", "tests/cases.py", "tests/reference.py", "tests/miniatures")
#: Seconds that a test may take, and how often longer than before all of them together.
PATIENCE, TIMES = 300.0, 6.0
FAST, SLOW = "not slow and not data", "slow and not data"


@dataclass(frozen=True)
class Mutant:
    """A mistake. ``reason``: why no test can notice, where that is so; ``leak``: test data would leak."""

    file: str
    old: str
    new: str
    reason: str = ""
    leak: bool = False

    @property
    def room(self) -> str:
        return self.file.split("/")[1]

    @property
    def source(self) -> str:
        return (ROOT / self.file).read_text(encoding="utf-8")

    @property
    def applies(self) -> bool:
        return (ROOT / self.file).exists() and self.source.count(self.old) == 1

    @property
    def key(self) -> str:
        """Of the mistake in this version of the file."""
        return digest(self.file, self.old, self.new, self.source)


@dataclass(frozen=True)
class Step:
    """Tests that run together: those of ``groups`` with this marker, in this order."""

    groups: tuple[str, ...]
    marker: str
    paths: tuple[str, ...]


def digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


@functools.cache
def _files() -> list[Path]:
    """All files of the repository, those included that are new."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in sorted(set(filter(None, listed.split("\0")))) if (ROOT / name).is_file()]


def _content(root: Path, *folders: str) -> str:
    """A digest of the files in these folders."""
    chosen = [path for path in _files() if any(path.is_relative_to(folder) for folder in folders)]
    return digest(*(f"{path}\0{hashlib.sha256((root / path).read_bytes()).hexdigest()}" for path in chosen))


def paths(group: str, mutant: Mutant | None = None) -> list[str]:
    """The tests of a group, the likeliest to notice the mutant in front; examples in docstrings at the end."""
    files = [path for path in _files() if path.match("test_*.py") and path.parent == Path("tests", group)]
    if mutant is not None:
        stem = Path(mutant.file).stem
        by_name = ("leak", "split") if mutant.leak else (stem,)
        mentioned = {path for path in files if stem in (ROOT / path).read_text(encoding="utf-8")}
        files.sort(key=lambda path: (not any(word in path.stem for word in by_name), path not in mentioned))
    examples = ROOT / "advdiff" / group
    library = [examples] if examples.is_dir() else sorted(ROOT.glob("advdiff/*.py"))
    return [*map(str, files), *(str(path.relative_to(ROOT)) for path in library)]


def steps(mutant: Mutant) -> list[Step]:
    """The tests of its room; all others, from its right to its left; the slow ones."""
    place = GROUPS.index(mutant.room)
    others = (*GROUPS[place + 1 :], *GROUPS[:place])
    far = tuple(path for group in others for path in paths(group, mutant))
    near = tuple(paths(mutant.room, mutant))
    return [Step((mutant.room,), FAST, near), Step(others, FAST, far), Step(("slow",), SLOW, near + far)]


@contextmanager
def snapshot() -> Iterator[Path]:
    """The repository as it is now, in which the tests run once; what these compile stays there for the mutants."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        for path in _files():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)
        yield Path(name)


@contextmanager
def mutated(mutant: Mutant, root: Path) -> Iterator[Path]:
    """A copy of the snapshot, compiled files included, with the mistake in it."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        copy = Path(name, "copy")
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("_build", "_cache", "notebooks"))
        path = copy / mutant.file
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()
        path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
        yield copy


def known() -> dict[str, dict]:
    """Key → what was found, here or by whoever committed the summary."""
    committed = json.loads(SUMMARY.read_text(encoding="utf-8"))["mutants"] if SUMMARY.exists() else []
    lines = FOUND.read_text(encoding="utf-8").splitlines() if FOUND.exists() else []
    return {each["key"]: each for each in [*committed, *map(json.loads, lines)]}


def _keep(key: str, **what: object) -> dict:
    FOUND.parent.mkdir(exist_ok=True)
    with FOUND.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"key": key, **what}, ensure_ascii=False) + "\n")
    return {"key": key, **what}


@functools.cache
def baseline(root: Path, group: str) -> float:
    """Seconds of a group's tests, or of all "slow" ones, on the library as it is. They have to pass."""
    of_all = group == "slow"
    looked_at = ["tests"] if of_all else [f"tests/{group}", *SHARED]
    key = f"{group} {_content(root, 'advdiff', 'pyproject.toml', *looked_at)}"
    tests = [path for each in (GROUPS if of_all else [group]) for path in paths(each)]
    found = known()
    if key in found:
        forked_pytest.run(root, tests, FAST, PATIENCE, 3600, "--collect-only")  # compiles them
    else:
        made = forked_pytest.run(root, tests, SLOW if of_all else FAST, 2 * PATIENCE, 3600)
        print(f"as it is: {group}: {made.ended} after {made.seconds:.0f} s, slowest {made.slowest:.1f} s", flush=True)
        if made.ended != "green":
            sys.exit(f"the tests of {group} do not pass on the library as it is: {made.by or made.ended}")
        if not of_all and made.slowest > PATIENCE / 4:
            sys.exit(f"a test of {group} takes {made.slowest:.0f} s, too long beside a patience of {PATIENCE:.0f} s")
        found[key] = _keep(key, **asdict(made))
    return float(found[key]["seconds"])


def attempt(mutant: Mutant, root: Path, step: Step) -> forked_pytest.Outcome:
    """Make the mistake in a copy, and run the tests of a step until one fails."""
    limit = PATIENCE + TIMES * sum(baseline(root, group) for group in step.groups)
    with mutated(mutant, root) as copy:
        each = PATIENCE if step.marker == FAST else 2 * PATIENCE
        return forked_pytest.run(copy, list(step.paths), step.marker, each, limit)


def try_all(chosen: list[Mutant], near: bool) -> dict[str, dict]:
    """Try what is open, first every mutant with the tests of its room (``near``: these alone); key → what is known."""
    found = known()
    with snapshot() as root:
        tests = _content(root, "tests")
        for number in range(1 if near else 3):
            todo = [(mutant.key, mutant) for mutant in chosen if _next(mutant, found, tests) == number]
            if todo:
                forked_pytest.preload()
            for place, (key, mutant) in enumerate(todo, start=1):
                made = attempt(mutant, root, steps(mutant)[number])
                by = made.by or ("time" if made.ended == "time" else "")
                what = {"by": by} if made.ended != "green" else {"passed": number + 1, "tests": tests}
                found[key] = _keep(key, file=mutant.file, new=mutant.new, **what)
                said = f"{by or 'not noticed'} {made.seconds:.0f} s  {mutant.file}: {mutant.new[:80]}"
                print(f"{place}/{len(todo)} {said}", flush=True)
    return found


def _next(mutant: Mutant, found: dict[str, dict], tests: str) -> int | None:
    """The step with which a mutant is to go on; None if nothing is left to try."""
    each = found.get(mutant.key)
    if each is None:
        return 0
    if "by" in each or mutant.reason:
        return None
    return int(each["passed"]) if each["tests"] == tests else 0
