"""Records as data frames: which runs, and their numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from advdiff.experiments import read, records
from advdiff.experiments.plan import resolve
from advdiff.experiments.recipes import RECIPES
from advdiff.results.frame import collect, frame, select
from tests.experiments.made_up import changed, record


def synthetic(model="mlp", seed=0, values=(1.0, 2.0, 3.0, 4.0), options=None, profile="full", **settings):
    usual, budget = resolve(RECIPES["synthetic"], model, profile, settings)
    chosen = {"shift": "block", "labels": "shared", **(options or {})}
    return record(
        seed, experiment="synthetic", model=model, settings=usual,
        budget=budget, profile=profile, options=chosen, metrics=dict(zip("abcd", values, strict=True)),
        train=["a"], valid=["b"], test=["c", "d"],
    )  # fmt: skip


def test_a_row_per_run_with_all_that_was_planned_and_came_of_it():
    found = [
        synthetic(seed=3),
        synthetic("advdifformer-s", beta=0.7),
        changed(synthetic("gcn"), status="diverged", metrics={}),
    ]
    rows = frame(found, ["b", "test mean", "test worst"])
    assert rows["model"].tolist() == ["mlp", "advdifformer-s", "gcn"] and rows["seed"].tolist() == [3, 0, 0]
    assert rows.loc[1, "beta"] == 0.7 and np.isnan(rows.loc[0, "beta"]), "an MLP has no β"
    assert rows.loc[0, ["shift", "learning_rate", "epochs", "epochs_trained"]].tolist() == ["block", 0.01, 500, 1]
    assert rows.loc[0, ["b", "test mean", "test worst"]].tolist() == [2.0, 3.5, 4.0]
    assert rows.loc[2, ["b", "test mean"]].isna().all() and rows["status"].tolist()[2] == "diverged"
    assert rows.columns.get_loc("beta") < rows.columns.get_loc("status") < rows.columns.get_loc("test mean")
    assert frame([]).empty


def test_rows_are_models_in_the_recipes_order_and_seeds():
    found = [
        synthetic(model, seed, [k + seed for k in range(4)]) for seed in (1, 0) for model in ("mlp", "advdifformer-s")
    ]
    numbers = collect(found, columns=("b", "d", "train", "valid", "test mean", "test worst"))
    models = ["advdifformer-s", "mlp"]
    assert numbers.index.tolist() == [(model, seed) for model in models for seed in (0, 1)]
    assert numbers.loc[("mlp", 1)].tolist() == [2, 4, 1, 2, 3.5, 4]
    assert collect(found).columns.tolist() == ["a", "b", "c", "d"]
    # pandas keeps the order, which is not that of the alphabet in either direction
    more = collect([*found, synthetic("gcn"), synthetic("diff-time")])
    order = [model for model in RECIPES["synthetic"].models if model in ("mlp", "advdifformer-s", "diff-time")]
    assert more.index.unique("model").tolist() == [*order, "gcn"] != sorted([*order, "gcn"])
    assert more.groupby(level="model", observed=True).mean().index.tolist() == [*order, "gcn"]
    assert more["a"].unstack("model").columns.tolist() == more.sort_index().index.unique("model").tolist()


def test_settings_and_options_can_be_levels():
    betas = (2.0, 0.5, 1.0)
    found = [
        synthetic("advdifformer-s", seed, options={"labels": labels}, beta=beta)
        for seed in (0, 1)
        for labels in ("shared", "per_graph")
        for beta in betas
    ]
    numbers = collect(found, by=("labels", "beta"), columns=["test mean"])
    assert numbers.index.unique("beta").tolist() == [0.5, 1.0, 2.0]
    assert numbers.index.unique("labels").tolist() == ["shared", "per_graph"]
    assert numbers.loc["shared", "test mean"].unstack("seed").shape == (3, 2)
    assert collect(found[:1], by="lr").index.tolist() == [(0.01, 0)]
    assert collect(found[:1], by=()).index.names == ["seed"] and collect(found[:1], by=()).index.tolist() == [0]
    assert collect(found[:1], by="patience").index.nlevels == 2, "a setting can be None"
    with pytest.raises(ValueError, match=r"they differ in labels \(\"shared\", \"per_graph\"\)"):
        collect(found, by="beta")
    with pytest.raises(ValueError, match="the same run is given twice"):
        collect([found[0], replace(found[0])], by="beta")
    with pytest.raises(ValueError, match="has no 'gamma'"):
        collect(found, by="gamma")
    with pytest.raises(ValueError, match="no records"):
        collect([])


def test_missing_runs_and_numbers_have_their_place():
    found = [synthetic("mlp", 0, (1, 2, None, 4)), synthetic("mlp", 1), synthetic("gcn", 0)]
    numbers = collect(found, columns=("c", "test mean"))
    assert numbers.shape == (4, 2) and int(numbers.isna().sum().sum()) == 4
    assert math.isnan(numbers.loc[("mlp", 0), "test mean"]) and numbers.loc[("gcn", 1)].isna().all()
    assert numbers["c"].unstack("seed").mean(axis=1, skipna=False).isna().all()


def test_a_quotient_pairs_the_seeds():
    found = [synthetic("mlp", seed, [2.0**seed] * 4) for seed in range(3)]
    found += [synthetic("gcn", seed, [8.0] * 4) for seed in range(3)]
    numbers = collect(found, columns=["a"])
    assert (numbers / numbers.xs("mlp", level="model")).loc["gcn", "a"].tolist() == [8, 4, 2]


def test_selection(tmp_path):
    found = [
        synthetic(), synthetic("mlp", 1, options={"shift": "none"}), synthetic("advdifformer-s", beta=0.7),
        synthetic("advdifformer-s"), synthetic("mlp", profile="quick"), changed(synthetic("gcn"), only_valid=True),
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
