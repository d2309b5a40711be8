"""Records as arrays, and what a few seeds can tell."""

import math
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

from advdiff.experiments import read, records
from advdiff.experiments.curves import STYLES, Curves, collect, draw, interval, log_slope, sign_test
from advdiff.experiments.jobs import resolve
from advdiff.experiments.recipes import RECIPES
from advdiff.experiments.selection import select
from tests.experiments.test_records import record

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def synthetic(model="mlp", seed=0, values=(1.0, 2.0, 3.0, 4.0), options=None, profile="full", **settings):
    usual, budget = resolve(RECIPES["synthetic"], model, profile, settings)
    chosen = {"shift": "block", "labels": "shared", **(options or {})}
    return replace(
        record(f"{model}{seed}{chosen}{settings}{profile}", seed), experiment="synthetic", model=model, settings=usual,
        budget=budget.as_dict(), profile=profile, options=chosen, metrics=dict(zip("abcd", values, strict=True)),
        train=["a"], valid=["b"], test=["c", "d"],
    )  # fmt: skip


def test_axes_are_models_in_the_recipes_order_seeds_and_columns():
    found = [
        synthetic(model, seed, [k + seed for k in range(4)]) for seed in (1, 0) for model in ("mlp", "advdifformer-s")
    ]
    curves = collect(found, columns=("b", "d", "train", "valid", "test mean", "test worst"))
    assert curves.axes["model"] == ("advdifformer-s", "mlp") and curves.axes["seed"] == (0, 1)
    assert curves.values.shape == (2, 2, 6) and curves.complete()
    assert curves.at(model="mlp", seed=1).values.tolist() == [2, 4, 1, 2, 3.5, 4]
    assert collect(found).axes["column"] == ("a", "b", "c", "d")
    assert repr(curves) == "Curves(model: 2, seed: 2, column: 6)"


def test_settings_and_options_can_be_axes():
    betas = (2.0, 0.5, 1.0)
    found = [
        synthetic("advdifformer-s", seed, options={"labels": labels}, beta=beta)
        for seed in (0, 1)
        for labels in ("shared", "per_graph")
        for beta in betas
    ]
    curves = collect(found, by=("labels", "beta"), columns=["test mean"])
    assert curves.axes["beta"] == (0.5, 1.0, 2.0) and curves.axes["labels"] == ("shared", "per_graph")
    assert curves.at(column="test mean", labels="shared").values.shape == (3, 2)
    assert collect(found[:1], by="lr").axes["learning_rate"] == (0.01,)
    with pytest.raises(ValueError, match=r"they differ in labels \(\"shared\", \"per_graph\"\)"):
        collect(found, by="beta")
    with pytest.raises(ValueError, match="the same run is given twice"):
        collect([found[0], replace(found[0])], by="beta")
    with pytest.raises(ValueError, match="has no 'gamma'"):
        collect(found, by="gamma")
    with pytest.raises(ValueError, match="no records"):
        collect([])


def test_missing_runs_and_numbers_are_nan_and_never_averaged_away():
    found = [
        synthetic("mlp", 0, (1, 2, None, 4)), synthetic("mlp", 1), synthetic("gcn", 0),
    ]  # fmt: skip
    curves = collect(found, columns=("c", "test mean"))
    assert math.isnan(curves.at(model="mlp", seed=0, column="test mean").values)
    assert np.isnan(curves.at(model="gcn", seed=1).values).all()
    assert np.isnan(curves.mean("seed").at(model="mlp").values).all() and not curves.complete()
    assert np.isnan(curves.median("seed").at(model="gcn").values).all()
    assert repr(curves).endswith("4 missing)")


def test_selection(tmp_path):
    found = [
        synthetic(), synthetic("mlp", 1, options={"shift": "none"}), synthetic("advdifformer-s", beta=0.7),
        synthetic("advdifformer-s"), synthetic("mlp", profile="quick"), replace(synthetic("gcn"), only_valid=True),
    ]  # fmt: skip
    for each in found:
        records.append(tmp_path / "synthetic.jsonl", each)
    found = read(tmp_path / "synthetic.jsonl")
    assert len(select(found)) == 5
    assert len(select(found, model="mlp")) == 3 and len(select(found, model=["mlp"], profile="full")) == 2
    assert len(select(found, shift="block")) == 4 and len(select(found, shift=["block", "none"])) == 5
    assert len(select(found, settings={"beta": 0.7})) == 1 and len(select(found, settings={"beta": (0.2, 0.7)})) == 2
    assert len(select(found, settings={"lr": 0.01})) == 5
    assert len(select(found, model="advdifformer-s", variants=False)) == 1
    found.append(synthetic("advdifformer-s", beta=0.7, lr=0.1))
    assert len(select(found, model="advdifformer-s", variants=["beta"])) == 2
    assert len(select(found, model="advdifformer-s", variants=("beta", "lr"))) == 3
    assert select(found, colour="red") == []


def test_parts_and_pairs():
    curves = Curves({"model": ("a", "b"), "seed": (0, 1, 2)}, np.array([[1.0, 2.0, 4.0], [2.0, 2.0, 2.0]]))
    assert curves.relative_to(model="b").at(model="a").values.tolist() == [0.5, 1.0, 2.0]
    assert curves.at(seed=[2, 0]).values.tolist() == [[4, 1], [2, 2]]
    assert curves.relative_to(seed=0).values[0].tolist() == [1, 2, 4]
    assert curves.median("seed").values.tolist() == [2, 2]
    with pytest.raises(ValueError, match="no model 'c'; there are: a, b"):
        curves.at(model="c")
    with pytest.raises(ValueError, match="no axis 'beta'; there are: model, seed"):
        curves.mean("beta")
    with pytest.raises(ValueError, match="does not fit"):
        Curves({"seed": (0,)}, np.zeros(2))


def test_what_five_seeds_can_tell():
    unanimous = sign_test([1, 1, 1, 1, 1], 2.0)
    assert (unanimous.below, unanimous.pairs, unanimous.p) == (5, 5, 2 / 32) and str(unanimous) == "5/5"
    assert sign_test([1, 2], [1, 2]).p == 1.0
    with pytest.raises(ValueError, match="missing"):
        sign_test([1, math.nan])
    for bad in ([1.0], [1.0, math.inf]):
        with pytest.raises(ValueError, match="at least two"):
            interval(bad)


def test_the_interval_covers_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(2000, 5))
    hit = [low <= 3.0 <= high for low, high in map(interval, draws)]
    assert abs(np.mean(hit) - 0.95) < 0.02


def test_growth():
    x = np.linspace(0.1, 2, 7)
    assert log_slope(x, 3 * x**1.5) == pytest.approx(1.5)


@pytest.mark.parametrize("centre", ["median", "mean"])
def test_a_line_shows_centre_range_and_seeds(centre):
    figure, axes = plt.subplots()
    values = np.array([[1.0, 2.0], [2.0, 3.0], [6.0, 10.0]])
    line = draw(axes, [0, 1], values, model="mlp", centre=centre, seeds=True, linestyle="--")
    assert line.get_ydata().tolist() == ([2, 3] if centre == "median" else [3, 5])
    assert line.get_label() == STYLES["mlp"]["label"] and line.get_linestyle() == "--"
    assert len(axes.lines) == 4 and len(axes.collections) == 1
    moved = draw(axes, values, values, model="new", band=False)
    assert moved.get_xdata().tolist() == [2, 3] and moved.get_label() == "new" and len(axes.collections) == 1
    assert draw(axes, [0, 1], values[0], label="one").get_ydata().tolist() == [1, 2]
    with pytest.raises(ValueError, match="unknown centre"):
        draw(axes, [0, 1], values, centre="mode")
    plt.close(figure)
