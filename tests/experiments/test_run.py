"""``run`` and ``tune``: what is run, what is found again, what is refused."""

import errno
import itertools
import json
import os
import re
import warnings
from dataclasses import replace

import pytest

from advdiff.experiments import SweepError, read, records, run, sweep, tune
from advdiff.experiments.plan import Plan
from advdiff.experiments.recipes import RECIPES
from advdiff.propagation import NearSingularWarning
from tests.experiments import toy as toys

pytestmark = pytest.mark.usefixtures("toy")


@pytest.fixture
def count(monkeypatch):
    """Counts the runs that are really made."""
    made = []
    real = sweep.execute

    def counted(job, **keywords):
        made.append(job)
        return real(job, **keywords)

    monkeypatch.setattr("advdiff.experiments.sweep.execute", counted)
    return made


def test_a_record_says_everything(tmp_path):
    (record,) = run("toy", "wide", seeds=[3], results=tmp_path, kind="easy", settings={"lr": 0.01, "dropout": 0})
    content = json.loads((tmp_path / "toy.jsonl").read_text())
    assert content == record.as_dict()
    plan, outcome, provenance = content["plan"], content["outcome"], content["provenance"]
    assert plan["options"] == {"kind": "easy", "num_nodes": 10}  # of the quick profile
    assert plan["settings"] == {"hidden_channels": 4, "dropout": 0.0, "beta": 0.2}
    assert plan["budget"] == {
        "epochs": 4, "learning_rate": 0.01, "weight_decay": 0.0, "batch_size": 32, "fixed_batches": False,
        "evaluate_every": 1, "patience": None
    }  # fmt: skip
    assert (plan["seed"], plan["data_seed"]) == (3, 3)
    assert outcome["metric"] == "mse" and set(outcome["metrics"]) == {"a", "b", "c", "d"}
    assert outcome["valid_metric"] == outcome["metrics"]["b"]
    assert (outcome["train"], outcome["valid"], outcome["test"]) == (["a"], ["b"], ["c", "d"])
    assert outcome["parameters"] == 4 * 3 + 4 + 4 + 1
    assert outcome["status"] == "finished" and outcome["epochs"] == 4
    assert 0 < outcome["peak_memory_gb"] < 100 and outcome["cpu_seconds"] > 0
    assert outcome["seconds"] > 0 and outcome["seconds_per_epoch"] > 0
    assert set(provenance["versions"]) == {"python", "torch", "pyg", "advdiff"}
    assert provenance["machine"]["cores"] >= 1 and provenance["machine"]["cpu"]
    text = (tmp_path / "toy.jsonl").read_text()
    assert str(tmp_path) not in text and os.uname().nodename not in json.dumps(provenance["machine"])


def test_the_default_is_all_models_on_all_kinds(tmp_path):
    found = run("toy", seeds=2, results=tmp_path)
    assert [(r.plan.options["kind"], r.plan.seed, r.plan.model) for r in found] == [
        (kind, seed, model) for kind in ("easy", "hard") for seed in (0, 1) for model in ("linear", "wide")
    ]


def test_recorded_runs_are_not_made_again(tmp_path, count):
    first = run("toy", "linear", seeds=[0, 1], results=tmp_path, kind="easy")
    assert len(count) == 2
    again = run("toy", "all", seeds=[0, 1, 2], results=tmp_path, kind="easy")
    assert len(count) == 2 + 4
    assert [r for r in again if r.plan.model == "linear" and r.plan.seed < 2] == first
    run("toy", "all", seeds=3, results=tmp_path, kind="easy")
    assert len(count) == 6
    assert len((tmp_path / "toy.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    "change", [{"settings": {"epochs": 5}}, {"profile": "full"}, {"num_nodes": 11}, {"seeds": [1]}, {"data_seed": 7}]
)
def test_what_defines_a_run_makes_another_run(tmp_path, count, change):
    usual = {"seeds": [0], "kind": "easy", "results": tmp_path}
    (first,) = run("toy", "linear", **usual)
    (other,) = run("toy", "linear", **{**usual, **change})
    assert len(count) == 2 and first.key != other.key


def test_whole_numbers_and_fractions_are_one_setting():
    jobs = [
        Plan("toy", "toy", {}, "wide", settings, 0, 0, "quick", budget)
        for value, lr in ((1, 1), (1.0, 1.0))
        for settings, budget in [run_resolved({"beta": value, "lr": lr})]
    ]
    assert jobs[0].key == jobs[1].key


def run_resolved(overrides):
    from advdiff.experiments.plan import resolve

    return resolve(RECIPES["toy"], "wide", "quick", overrides)


def test_the_seed_draws_the_data_unless_they_are_fixed(tmp_path):
    free = run("toy", "linear", seeds=2, results=tmp_path, kind="easy")
    fixed = run("toy", "linear", seeds=2, results=tmp_path, kind="easy", data_seed=0)
    assert [r.plan.data_seed for r in free] == [0, 1] and [r.plan.data_seed for r in fixed] == [0, 0]
    assert free[0].key == fixed[0].key
    assert free[1].outcome.metrics != fixed[1].outcome.metrics


def test_results_may_be_a_file(tmp_path):
    run("toy", "linear", results=tmp_path / "mine.jsonl", kind="easy")
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["mine.jsonl"]


def test_a_diverged_run_is_a_result(tmp_path, count):
    for _ in range(2):
        (record,) = run("toy", "linear", results=tmp_path, kind="nan")
        outcome = record.outcome
        assert outcome.status == "diverged" and outcome.metrics == {} and outcome.valid_metric is None
    assert len(count) == 1


@pytest.mark.parametrize("words", ["can't allocate memory", "not enough memory"])  # of torch on Linux, on Windows
def test_out_of_memory_is_recorded_and_tried_again(tmp_path, monkeypatch, words):
    def none_left(*args, **keywords):
        raise RuntimeError(f"DefaultCPUAllocator: {words}: you tried to allocate 1 bytes")

    with monkeypatch.context() as patch:
        patch.setattr("advdiff.nn.build", none_left)
        (record,) = run("toy", "linear", results=tmp_path, kind="easy")
    assert record.outcome.status == "out of memory" and not record.complete
    (record,) = run("toy", "linear", results=tmp_path, kind="easy")
    assert record.outcome.status == "finished"
    assert read(tmp_path / "toy.jsonl") == [record]


def test_warnings_of_the_equation_are_recorded_once_and_others_shown_once(tmp_path, monkeypatch):
    real = toys.Model.forward

    conditions = itertools.count(1)

    def forward(self, x, edge_index, **keywords):
        warnings.warn("θ lies low", NearSingularWarning, stacklevel=1)
        warnings.warn(f"condition {next(conditions) / 4:.1e} at θ", NearSingularWarning, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)
        return real(self, x, edge_index)

    monkeypatch.setattr(toys.Model, "forward", forward)
    with pytest.warns(UserWarning) as shown:
        (record,) = run("toy", "linear", results=tmp_path, kind="easy")
    assert record.outcome.remarks[0] == "θ lies low" and len(record.outcome.remarks) == 2
    assert re.fullmatch(r"condition 2\.5e-01 at θ \(the first of \d+ like it\)", record.outcome.remarks[1])
    assert [str(each.message) for each in shown] == ["something else"]


def test_a_run_that_raises_does_not_stop_the_others(tmp_path, monkeypatch):
    real = toys.build

    def build(name, *args, **keywords):
        if name == "linear":
            raise TypeError("no such thing")
        return real(name, *args, **keywords)

    monkeypatch.setattr("advdiff.nn.build", build)
    with pytest.raises(SweepError, match=r"2 of 4 runs failed.*linear easy seed 0: TypeError: no such") as caught:
        run("toy", results=tmp_path)
    assert "in build" in caught.value.failures[0].traceback
    assert {r.plan.model for r in read(tmp_path / "toy.jsonl")} == {"wide"}


def test_a_full_disk_stops_the_sweep_with_one_sentence(tmp_path, monkeypatch):
    run("toy", "linear", results=tmp_path, kind="easy")
    before = (tmp_path / "toy.jsonl").read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SweepError, match=r"No space left on device.*same command again"):
            run("toy", "wide", seeds=3, results=tmp_path, kind="easy")
    assert (tmp_path / "toy.jsonl").read_bytes() == before
    assert len(run("toy", "wide", seeds=3, results=tmp_path, kind="easy")) == 3


def test_an_interrupt_keeps_what_is_finished(tmp_path, monkeypatch):
    real, calls = sweep.execute, []

    def interrupted(job, **keywords):
        calls.append(job)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(job, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr("advdiff.experiments.sweep.execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("toy", results=tmp_path)
    assert len(read(tmp_path / "toy.jsonl")) == 2
    assert len(run("toy", results=tmp_path)) == 4


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"experiment": "toys"}, "unknown experiment 'toys'.*synthetic.*toy"),
        ({"model": "lineal"}, "unknown model 'lineal'.*linear, wide"),
        ({"model": []}, "no model.*linear, wide"),
        ({"kind": "odd"}, "unknown kind 'odd'.*easy, hard, nan"),
        ({"shape": 3}, "no option 'shape'.*kind, num_nodes"),
        ({"profile": "slow"}, "unknown profile 'slow'.*quick, full"),
        ({"seeds": 0}, "at least 1"),
        ({"seeds": [-1]}, "at least 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"device": "tpu"}, "unknown device 'tpu'.*cpu"),
        ({"settings": {"gamma": 1}}, "none of these models has a setting 'gamma'.*beta"),
        ({"model": "linear", "settings": {"beta": 1}}, "linear has no setting 'beta'.*dropout"),
        ({"settings": {"epochs": 0}}, "epochs is 0"),
    ],
)
def test_mistakes_are_answered_with_what_would_be_right(tmp_path, keywords, message):
    with pytest.raises(ValueError, match=message):
        run(**{"experiment": "toy", "results": tmp_path, **keywords})
    assert not list(tmp_path.iterdir())


def test_fixed_data_cannot_have_a_seed(tmp_path, monkeypatch):
    monkeypatch.setitem(RECIPES, "toy", replace(toys.RECIPE, seeded_data=False))
    with pytest.raises(ValueError, match="not drawn"):
        run("toy", results=tmp_path, data_seed=1)
    (record,) = run("toy", "linear", results=tmp_path, kind="easy")
    assert record.plan.data_seed is None


def test_the_profile_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVDIFF_PROFILE", "full")
    (record,) = run("toy", "linear", results=tmp_path, kind="easy")
    assert record.plan.profile == "full" and record.outcome.epochs == 8 and record.plan.options["num_nodes"] == 20


# -------------------------------------------------------------------------------------------------------- tuning


def test_tuning_takes_the_best_on_validation_data_and_does_not_see_the_tests(tmp_path, count):
    (tuned,) = tune("toy", "wide", seeds=2, results=tmp_path, kind="easy")
    assert len(tuned.tried) == 4 and len(count) == 8
    found = read(tmp_path / "toy-tuning.jsonl")
    assert all(r.plan.only_valid and r.outcome.test == [] and set(r.outcome.metrics) == {"a", "b"} for r in found)
    assert tuned.value == min(value for _, value in tuned.tried)
    best = [r for r in found if r.plan.all_settings.items() >= tuned.settings.items()]
    assert sum(r.outcome.valid_metric for r in best) / 2 == pytest.approx(tuned.value)
    assert "best of 4" in str(tuned) and "validation mse" in str(tuned)
    assert tuned.settings and all(f"{name}={value}" in str(tuned) for name, value in tuned.settings.items())
    tune("toy", "wide", seeds=2, results=tmp_path, kind="easy")
    assert len(count) == 8  # found again
    assert not (tmp_path / "toy.jsonl").exists()
    run("toy", "wide", results=tmp_path, kind="easy", settings=tuned.settings)


def test_the_grid_holds_what_a_model_has_and_can_be_replaced(tmp_path):
    plain, wide = tune("toy", results=tmp_path, kind="easy", grid={"lr": [0.1]})
    assert plain.settings == {"learning_rate": 0.1}
    assert set(wide.settings) == {"beta", "learning_rate"} and len(wide.tried) == 2
    (few,) = tune("toy", "wide", results=tmp_path, kind="easy", points=3)
    assert len(few.tried) == 3
    with pytest.raises(ValueError, match="none of these models has a setting 'gamma'"):
        tune("toy", results=tmp_path, grid={"gamma": [1]})


def test_points_without_a_value_are_never_best(tmp_path):
    (tuned,) = tune("toy", "linear", results=tmp_path, kind="nan")
    assert tuned.settings == {} and "2 without a value" in str(tuned) and "nothing to choose" in str(tuned)


def test_the_records_file_is_read_with_the_public_function(tmp_path):
    found = run("toy", "linear", results=tmp_path, kind="easy")
    assert read(tmp_path / "toy.jsonl") == found == records.read(tmp_path / "toy.jsonl")
