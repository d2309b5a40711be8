"""The recipes of the page *For users of PyG* run, one after the other as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "book" / "for_users_of_pyg.md"


def test_the_recipes_run() -> None:
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    recipes = {part.splitlines()[0]: re.findall(r"```python\n(.*?)```", part, re.DOTALL) for part in sections}
    names = [name for name, blocks in recipes.items() if blocks]
    assert names == [
        "A drop-in layer", "Your own data", "Molecules with edge features", "Explaining a prediction", "Learning β",
    ]  # fmt: skip
    shared: dict[str, object] = {"__name__": "page"}
    for name in names:
        for block in recipes[name]:
            assert "assert" in block  # a recipe says what comes out
            exec(compile(block, f"{PAGE.name}: {name}", "exec"), shared)
