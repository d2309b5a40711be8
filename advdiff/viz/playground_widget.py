"""The playground: advective diffusion on a graph that the reader draws, in the page itself, without a kernel."""

from __future__ import annotations

import itertools
import math
import re
import uuid
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import torch
import traitlets
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.operators import Attention, Generator, normalize_adjacency
from advdiff.operators.graph import NORMALIZATIONS
from advdiff.propagation import exponential
from advdiff.viz.playground_graphs import example_graphs, presets
from advdiff.viz.playground_numbers import NUMBERS

SCRIPTS = Path(__file__).with_name("playground")
#: In the order in which one needs the other.
MODULES = (
    *("kernels", "dense", "spectrum", "bounds", "graph", "address", "colours"),
    *("stamps", "drawing", "editor", "elements", "controls", "charts"),
    *("session", "editing", "numbers", "panels", "view"),
)
ATTENTIONS = ("off", "uniform", "places", "signal")
PANELS = ("curves", "spectrum", "solvers", "layers", "second", "numbers", "edges")
_LIMITS = {"beta": (0, 3), "time": (0, 10), "theta": (0.01, 6), "order": (1, 6), "layers": (1, 40)}
_IMPORT = re.compile(r'^import\s*\{[^}]*\}\s*from\s*"\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|class|const|let)", re.MULTILINE)
_NAMESPACE = uuid.UUID("6d2f6d1e-2c4e-5f0a-9a57-0f1d5b7c9e31")
_made = itertools.count()


def joined(paths: list[Path]) -> str:
    """Modules one after another as one script: imports of each other and exports are taken out.

    Example:
        >>> from advdiff.viz.playground_widget import MODULES, SCRIPTS, joined
        >>> script = joined([SCRIPTS / f"{name}.js" for name in MODULES])
        >>> "import {" in script, "function render(" in script
        (False, True)
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", path.read_text(encoding="utf-8"))) for path in paths)


def source() -> str:
    """The playground as one ES module, as anywidget loads it.

    Example:
        >>> from advdiff.viz.playground_widget import source
        >>> source().rstrip().splitlines()[-1]
        'export default { render };'
    """
    return joined([SCRIPTS / f"{name}.js" for name in MODULES]) + "\nexport default { render };\n"


def _next_id() -> str:
    """The n-th widget of a kernel always has the same id, so that a notebook that runs anew stays as it is."""
    return uuid.uuid5(_NAMESPACE, str(next(_made))).hex


def _arcs(edges: list[list[float]]) -> tuple[Tensor, Tensor]:
    """``edge_index`` with both directions of an edge and one of an arrow, and the weights."""
    both = [[u, v, w] for u, v, _, w in edges] + [[v, u, w] for u, v, arrow, w in edges if not arrow and u != v]
    table = torch.tensor(both, dtype=torch.float64).reshape(-1, 3)
    return table[:, :2].T.long(), table[:, 2]


class Playground(anywidget.AnyWidget):
    """The widget. Its traits are what the reader sets, and change with it; setting one moves the page.

    Attributes:
        graph: ``points``, places with x from −4/3 to 4/3 and y from −1 to 1, and ``edges`` [from, to, 1 for an arrow or
            0 for both directions, weight].
        name: of the example that it is; empty for a graph of one's own.
        start: z(0), a number per node.
        signal: the second signal, from which ``attention="signal"`` is made.
        second: edges of the second graph, or None.
        beta, time, theta, order, layers: β ∈ [0, 3], T ∈ [0, 10], θ, K, and the number of layers n.
        normalization: ``"symmetric"`` or ``"row"``.
        attention: ``"off"``, ``"uniform"``, ``"places"`` (of the nodes in the picture) or ``"signal"``.
        divided: whether z(T) is shown divided by its growth, e^{βT}, or e^{(β−1)T} without attention.
        panels: the panels that are open.
        compact: whether only the controls of a preset are shown; a button shows the others.
        told: the numbers above the caption: any of ``smallest``, ``leftmost``, ``critical``, ``steps``, ``shift``,
            ``variation`` and ``movement``.
        caption: a sentence below.

    Example:
        >>> from advdiff import viz
        >>> playground = viz.Playground(beta=0.5, time=2.0)
        >>> playground
        Playground(karate club: 34 nodes, 78 edges, beta=0.5, time=2)
        >>> playground.state.shape
        torch.Size([34])
    """

    _esm = source()
    _css = (SCRIPTS / "playground.css").read_text(encoding="utf-8")
    examples = traitlets.Dict().tag(sync=True)
    name = traitlets.Unicode("karate club").tag(sync=True)
    graph = traitlets.Dict().tag(sync=True)
    start: Any = traitlets.List().tag(sync=True)
    signal: Any = traitlets.List().tag(sync=True)
    second: Any = traitlets.List(default_value=None, allow_none=True).tag(sync=True)
    beta = traitlets.CFloat(0.5).tag(sync=True)
    time = traitlets.CFloat(2.0).tag(sync=True)
    theta = traitlets.CFloat(1.0).tag(sync=True)
    order = traitlets.CInt(3).tag(sync=True)
    layers = traitlets.CInt(10).tag(sync=True)
    normalization = traitlets.Unicode("symmetric").tag(sync=True)
    attention = traitlets.Unicode("uniform").tag(sync=True)
    divided = traitlets.Bool(True).tag(sync=True)
    panels = traitlets.List(["curves", "spectrum"]).tag(sync=True)
    compact = traitlets.Bool(False).tag(sync=True)
    told: Any = traitlets.List([]).tag(sync=True)
    caption = traitlets.Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        examples = example_graphs()
        name = traits.setdefault("name", "" if "graph" in traits else "karate club")
        if "graph" not in traits:
            check_choice("name of the graph", name, tuple(examples))
            example = examples[name]
            traits["graph"] = {"points": example["points"], "edges": example["edges"]}
            traits.setdefault("start", example["start"])
            traits.setdefault("signal", example["signal"])
        size = len(traits["graph"]["points"])
        traits.setdefault("start", [float(u == 0) for u in range(size)])
        traits.setdefault("signal", [0.0] * size)
        traits.setdefault("layout", ipywidgets.Layout(model_id=_next_id()))
        super().__init__(examples=examples, model_id=_next_id(), **traits)

    @traitlets.validate("beta", "time", "theta", "order", "layers")
    def _within(self, proposal: Any) -> float:
        low, high = _LIMITS[proposal.trait.name]
        if not (math.isfinite(proposal.value) and low <= proposal.value <= high):
            raise ValueError(f"{proposal.trait.name} is {proposal.value}; choose a value from {low} to {high}.")
        return int(proposal.value) if proposal.trait.name in ("order", "layers") else float(proposal.value)

    @traitlets.validate("normalization", "attention")
    def _known(self, proposal: Any) -> str:
        choices = NORMALIZATIONS if proposal.trait.name == "normalization" else ATTENTIONS
        check_choice(proposal.trait.name, proposal.value, choices)
        return str(proposal.value)

    @traitlets.validate("panels", "told")
    def _known_parts(self, proposal: Any) -> list[str]:
        word, choices = ("panel", PANELS) if proposal.trait.name == "panels" else ("number", tuple(NUMBERS))
        for part in proposal.value:
            check_choice(word, part, choices)
        return list(proposal.value)

    def _generator(self, edges: list[list[float]]) -> Generator:
        size = len(self.graph["points"])
        edge_index, weight = _arcs(edges)
        V = normalize_adjacency(edge_index, size, weight, kind=self.normalization)
        signals = {
            "uniform": [[1.0]] * size,
            "places": self.graph["points"],
            "signal": [[value] for value in self.signal],
        }
        vectors = torch.tensor(signals.get(self.attention, []), dtype=torch.float64)
        C = None if self.attention == "off" else Attention(vectors, vectors)
        return Generator(C, V, self.beta)

    @property
    def generator(self) -> Generator:
        """L = I − C − βV of the graph that is shown."""
        return self._generator(self.graph["edges"])

    @property
    def second_generator(self) -> Generator | None:
        """L′ of the second graph, if there is one."""
        return None if self.second is None else self._generator(self.second)

    @property
    def state(self) -> Tensor:
        """z(T) = e^{−LT} z(0) by the library, undivided."""
        return exponential(self.generator, torch.tensor(self.start, dtype=torch.float64), self.time, tol=1e-12)

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that are told, by the library."""
        return {key: NUMBERS[key](self) for key in self.told}

    def __repr__(self) -> str:
        size, edges = len(self.graph["points"]), len(self.graph["edges"])
        name = self.name or "own graph"
        told = "".join(f", {key}={round(value, 4) + 0.0:.4f}" for key, value in self.numbers.items())
        return f"Playground({name}: {size} nodes, {edges} edges, beta={self.beta:g}, time={self.time:g}{told})"


def playground(preset: str = "karate club", **traits: Any) -> Playground:
    """The playground with the settings of a preset, and with others in the place of some of them.

    Args:
        preset: ``"karate club"``, all controls; or, with few of them, ``"layers"``, ``"growth"``, ``"factions"``,
            ``"three solvers"``, ``"cut an edge"``, ``"swap of partners"``, ``"homophily"`` or ``"cut node 3 off"``.
        traits: traits of :class:`Playground`, such as ``beta=2.0`` or ``name="directed ring"``.

    Example:
        >>> from advdiff import viz
        >>> viz.playground(preset="swap of partners", time=0.5)
        Playground(two couples: 4 nodes, 2 edges, beta=1, time=0.5, shift=2.0000, variation=0.6321)
    """
    known = presets()
    check_choice("preset", preset, tuple(known))
    return Playground(**{**known[preset], **traits})
