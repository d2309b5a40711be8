"""Two directives of Sphinx for the reference pages, so that they cannot differ from the code.

    .. shell-command:: run       a command of the shell with its options, from its parser
    .. model-table::             every model by name, with its layer and its settings, from the registry

`_config.yml` names this file as an extension of the book.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Action = argparse.Action


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a command, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def own_actions(parser: argparse.ArgumentParser) -> list[Action]:
    """What a command takes itself, without ``--help`` and without commands below it."""
    skipped = (argparse._HelpAction, argparse._SubParsersAction)
    return [action for action in parser._actions if not isinstance(action, skipped)]


def _signature(action: Action) -> str:
    """``--model NAME [NAME ...]``, as the help of the shell writes it."""
    formatter = argparse.HelpFormatter("")
    given = formatter._format_args(action, (action.dest.upper() if action.option_strings else action.dest))
    return " ".join([*action.option_strings[-1:], *([given] if given else [])])


def _options(actions: Iterable[Action]) -> Iterator[str]:
    """A table of options; the help is literal text, in which nothing is markup."""
    formatter = argparse.HelpFormatter("")
    rows = [(_signature(action), formatter._expand_help(action)) for action in actions]
    if rows:
        yield from (".. list-table::", "   :widths: 40 60", "")
        for option, text in rows:
            yield from (f"   * - ``{option}``", f"     - {_escaped(text)}")
        yield ""


def _escaped(text: str) -> str:
    return re.sub(r"([\\*`|_:<$])", r"\\\1", text)


def command_lines(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """The text of one command. What all its experiments share is told once, and then what each has of its own."""
    program = f"advdiff {name}"
    below = subparsers(parser)
    if name in ("run", "tune", "table"):
        first, *others = below.values()
        seen = [{_signature(action) + str(action.help) for action in own_actions(each)} for each in others]
        shared = [a for a in own_actions(first) if all(_signature(a) + str(a.help) in each for each in seen)]
        yield from ("::", "", f"   {program} EXPERIMENT [options]", "")
        yield from _options(shared)
        if name != "run":
            yield from ("Experiments and the options of their data are those of ``advdiff run``.", "")
            return
        yield from (".. rubric:: Experiments and the options of their data", "")
        labels = {_signature(action) + str(action.help) for action in shared}
        for experiment, each in below.items():
            yield from (f"``{experiment}``", f"   {_escaped(each.description or '')}", "")
            own = [action for action in own_actions(each) if _signature(action) + str(action.help) not in labels]
            yield from ("   " + line if line else "" for line in _options(own))
    elif below:
        for sub, each in below.items():
            yield from command_lines(f"{name} {sub}", each)
    else:
        positional = [_signature(action) for action in own_actions(parser) if not action.option_strings]
        yield from ("::", "", "   " + " ".join([program, *positional, "[options]"]), "")
        yield from _options(own_actions(parser))


class ShellCommand(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from advdiff.cli import parser

        return _parsed(self, command_lines(self.arguments[0], subparsers(parser())[self.arguments[0]]))


def model_lines() -> Iterator[str]:
    """A table of all models."""
    from advdiff.nn import AdvDIFFormer, model_names, model_settings
    from advdiff.nn.registry import COMMON, MODELS, Spec

    yield from (".. list-table::", "   :header-rows: 1", "   :widths: 20 30 50", "")
    yield from ("   * - name", "     - made of", "     - settings of its own, and other defaults")
    for name in model_names():
        spec = MODELS[name]
        part: Any = spec.layer if isinstance(spec, Spec) else AdvDIFFormer
        own = {key: value for key, value in model_settings(name).items() if COMMON.get(key, inspect) != value}
        yield from (f"   * - ``{name}``", f"     - :class:`~{_path(part)}`")
        yield "     - " + (", ".join(f"``{key}={value!r}``" for key, value in own.items()) or "none")


def _path(part: type) -> str:
    return f"{part.__module__}.{part.__qualname__}"


class ModelTable(SphinxDirective):
    #: Read before autodoc starts, which replaces the defaults of the signatures by their source text.
    lines: ClassVar[list[str]] = []

    def run(self) -> list[nodes.Node]:
        return _parsed(self, self.lines)


def _parsed(directive: SphinxDirective, lines: Iterable[str]) -> list[nodes.Node]:
    container = nodes.Element()
    text = StringList(list(lines), source=directive.get_source_info()[0])
    directive.state.nested_parse(text, directive.content_offset, container)
    return container.children


def setup(app: Sphinx) -> dict[str, bool]:
    ModelTable.lines = list(model_lines())
    app.add_directive("shell-command", ShellCommand)
    app.add_directive("model-table", ModelTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
