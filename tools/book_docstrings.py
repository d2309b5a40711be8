"""How docstrings become pages: raised and lowered letters, and short signatures of dataclasses.

Docstrings are read in an editor first, so formulas between the words are plain text: ``e^{-LT}``, ``z_u``. Here they
become what they mean. `_config.yml` names this file as an extension of the book.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import signature, stringify_signature

#: Stays as it is: literals, roles with their text, and links.
_MARKUP = re.compile(r"(``.*?``|:[\w:]+:`.*?`|`.*?`_+)")
_WORDS = "dec|enc|emp|exp|max|min|ood-model|ood-label|in|out|int|tr|te|[A-Z]|∞|ℓ|[a-z]{1,2}"
_SHIFTED = re.compile(
    r"\^(?:\{(?P<raised>[^{}]+)\}|(?P<power>[A-Za-z0-9]+))"
    r"|(?:(?<![\w`])(?P<letter>\w[\u0300-\u036f]?)|(?<=‖))"
    rf"_(?:\{{(?P<lowered>[^{{}}]+)\}}|(?P<index>{_WORDS})(?![\w`]))"
)


def _shift(found: re.Match[str]) -> str:
    if found["raised"] or found["power"]:
        return rf"\ :sup:`{found['raised'] or found['power']}`\ "
    return rf"{found['letter'] or ''}\ :sub:`{found['lowered'] or found['index']}`\ "


def typeset(text: str) -> str:
    r"""One line of reStructuredText with its exponents and indices as superscripts and subscripts.

    >>> print(typeset("‖e^{-Lt}‖ and ``x^2``"))
    ‖e\ :sup:`-Lt`\ ‖ and ``x^2``
    >>> print(typeset("z_u, not edge_index"))
    z\ :sub:`u`\ , not edge_index
    """
    parts = _MARKUP.split(text)
    parts[::2] = [_SHIFTED.sub(_shift, plain) for plain in parts[::2]]
    return "".join(parts)


def typeset_lines(lines: list[str]) -> Iterator[str]:
    """All lines but those of displayed formulas, examples, literal blocks and tables, whose columns must stay."""
    block: int | None = None  # indentation of the directive whose content is left alone
    example = False
    rules = 0  # of a table; the third one ends it
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        rules += line.lstrip().startswith("====")
        if block is not None or example or rules % 3:
            yield line
        elif line.lstrip().startswith(".. math::"):
            block = indent
            yield line
        else:
            yield typeset(line)
            if line.rstrip().endswith("::"):
                block = indent


def process_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = typeset_lines(lines)


class _Made:
    """Stands for the default of a field that a factory makes."""

    def __repr__(self) -> str:
        return "..."


def process_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    """Leave out private fields, and the name that Python gives to a factory."""
    if not (what == "class" and isinstance(obj, type) and dataclasses.is_dataclass(obj)) or arguments is None:
        return None
    found = signature(obj, type_aliases=app.config.autodoc_type_aliases)
    public = [
        each.replace(default=_Made()) if repr(each.default) == "<factory>" else each
        for each in found.parameters.values()
        if not each.name.startswith("_")
    ]
    made = found.replace(parameters=public, return_annotation=inspect.Signature.empty)
    return stringify_signature(made, unqualified_typehints=True), None


def skip_member(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """A field of a named tuple has the docstring "Alias for field number 0", which helps nobody."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process_docstring, priority=600)  # after napoleon
    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
