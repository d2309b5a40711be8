"""Tag the cells of the chapters on data sets whose output does not depend on the data: these are compared everywhere.

    python -m tools.compared_cells            tag them
    python -m tools.compared_cells --check    change nothing, fail where something is to be done

Where the data are absent these chapters run on miniatures, whose numbers are other ones. What comes from ``results/``,
from the paper's tables or from an example by hand is the same there, and has the tag ``nbval-check-output``. Which
cells these are follows from their sources: what ``SOURCES`` return depends on the data, and so does all that is made
of it. A cell prints data if one of its expressions does; what it only assigns or asserts is not printed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import symtable
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from advdiff.atomic import replacing

TAG, FREE = "nbval-check-output", {"nbval-ignore-output", "nbval-skip"}
#: Functions that read data or train on them, and the question whether they are miniatures.
SOURCES = {"load", "run", "fit", "tune", "is_miniature"}


def used(node: ast.AST) -> set[str]:
    """Names of the notebook that a piece of code looks up; not those that a function or comprehension has itself."""

    def below(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from below(child)

    named = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return set(below(symtable.symtable(ast.unparse(node), "cell", "exec"))) | (named & SOURCES)


def changed(node: ast.AST) -> set[str]:
    """Names that a statement binds, fills or calls a method of."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        inside = each.func if isinstance(each, ast.Call) else each
        is_store = isinstance(getattr(inside, "ctx", None), ast.Store) or isinstance(each, ast.Call)
        while is_store and isinstance(inside, ast.Attribute | ast.Subscript):
            inside = inside.value
            if isinstance(inside, ast.Name):
                found.add(inside.id)
    return found


class Reader:
    """Follows the data through the statements of a notebook, in their order."""

    def __init__(self) -> None:
        self.of_data = set(SOURCES)
        self.modules: set[str] = set()  # and what else is imported: a call does not change these
        self.uses: dict[str, set[str]] = {}  # of functions: what they look up when they are called
        self.dependent: set[ast.stmt] = set()

    def depends(self, names: set[str], seen: frozenset[str] = frozenset()) -> bool:
        return any(
            name in self.of_data or self.depends(self.uses.get(name, set()), seen | {name}) for name in names - seen
        )

    def bind(self, names: set[str], of_data: bool) -> None:
        names = names - self.modules
        for name in names - SOURCES:
            self.uses.pop(name, None)
        self.of_data = (self.of_data | names) if of_data else (self.of_data - (names - SOURCES))

    def prints_data(self, statements: Sequence[ast.stmt], within: bool = False) -> bool:
        """Read the statements; whether an expression among them depends on the data. ``within``: their turn does."""
        return any([self._one(statement, within) for statement in statements])

    def _one(self, node: ast.stmt, within: bool) -> bool:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.modules |= {each.asname or each.name.partition(".")[0] for each in node.names}
            return False
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.bind({node.name}, False)
            self.uses[node.name] = used(node) - {node.name}
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)] if hasattr(node, "args") else []
            if any(self.depends(used(each)) for each in [*node.decorator_list, *defaults]):
                self.dependent.add(node)
            return False
        if isinstance(node, ast.For | ast.If | ast.While | ast.With):
            return self._block(node, within)
        depends = within or self.depends(used(node))
        if depends:
            self.dependent.add(node)
            self.bind(changed(node), True)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self.bind({each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}, False)
        return depends and isinstance(node, ast.Expr)

    def _block(self, node: ast.For | ast.If | ast.While | ast.With, within: bool) -> bool:
        heads: list[ast.expr]
        names: list[ast.expr] = []
        if isinstance(node, ast.With):
            heads = [item.context_expr for item in node.items]
            names = [item.optional_vars for item in node.items if item.optional_vars is not None]
        elif isinstance(node, ast.For):
            heads, names = [node.iter], [node.target]
        else:
            heads = [node.test]
        within = within or any(self.depends(used(head)) for head in heads)
        if within:
            self.dependent.add(node)
        self.bind({name for each in names for name in changed(each)}, within)
        if isinstance(node, ast.For | ast.While):
            self.prints_data(node.body, within)  # what the first turn fills, the second may print
        return self.prints_data([*node.body, *getattr(node, "orelse", [])], within)


def has_text(cell: dict) -> bool:
    return any(each["output_type"] == "stream" or "image/png" not in each["data"] for each in cell["outputs"])


def tagged(notebook: dict) -> dict:
    """The notebook with the tag where it belongs and nowhere else."""
    result, reader = copy.deepcopy(notebook), Reader()
    for cell in result["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or "start" in tags:
            continue
        prints_data = reader.prints_data(ast.parse("".join(cell["source"])).body)
        kept = [tag for tag in tags if tag != TAG]
        if has_text(cell) and not prints_data and not FREE & set(kept):
            kept.append(TAG)
        if set(kept) != set(tags):
            cell["metadata"]["tags"] = kept
    return result


def main(arguments: Sequence[str] | None = None, folder: Path = Path("notebooks")) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is to be done")
    check = parser.parse_args(arguments).check
    for path in sorted(folder.glob("1[0-4]_*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        made = tagged(notebook)
        if made == notebook:
            continue
        if check:
            sys.exit(f"{path} has cells to be compared everywhere, or not; run: python -m tools.compared_cells")
        with replacing(path) as file:
            file.write((json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode())
        count = sum(TAG in cell["metadata"].get("tags", []) for cell in made["cells"])
        print(f"{path}: {count} cells are compared everywhere")


if __name__ == "__main__":
    main()
