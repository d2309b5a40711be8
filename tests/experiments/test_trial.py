"""The trial: equal search, the same end from any number of processes and after any interruption."""

import re
from pathlib import Path

import pytest

from advdiff.cli import main
from advdiff.experiments import read
from advdiff.experiments.progress import progress
from advdiff.experiments.protocol import read_protocol
from advdiff.experiments.trial import Queue, all_stages, ranked, read_trial, run_trial, stages
from tests.experiments.made_up import record

PROTOCOL = """
[code]
commit = "0000000"

[axes.all]
learning_rate = [0.03, 0.01, 0.003]
hidden_channels = [4, 8]

[axes.advdifformer-s]
beta = [0.2, 1.0]

[defaults]
candidates = 4
rungs = [[4, 2], [2, 4]]
epochs = 6
longest = 6
patience = 100
seeds = [0, 1]
column = "test mean"
margin = 0.01

[[study]]
name = "tiny"
experiment = "synthetic"
options = { shift = "block", num_nodes = 30 }
models = ["mlp", "advdifformer-s"]
published = ["advdifformer-s"]

[[curve]]
name = "tiny-beta"
study = "tiny"
model = "advdifformer-s"
axis = "beta"
values = [0.0, 0.5]
seeds = [0]

[[statement]]
name = "tiny-best"
place = "nowhere"
label = ""
phrase = "superior performance"
restated = "AdvDIFFormer-s is better than an MLP"
family = "tiny"
study = "tiny"
"""


@pytest.fixture
def protocol(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(PROTOCOL)
    return read_protocol(path)


def outcomes(done):
    return {key: (run.outcome.metrics, run.outcome.chosen_epoch, run.outcome.epochs) for key, run in done.items()}


def test_every_model_is_searched_alike(protocol, tmp_path):
    (study,) = protocol.studies
    for model in study.models:
        tried = protocol.candidates(study, model)
        assert len(tried) == 4 and tried[0] == {} and len({str(each) for each in tried}) == 4
        assert tried == protocol.candidates(study, model)
    assert set(protocol.candidates(study, "mlp")[1]) == {"learning_rate", "hidden_channels"}
    assert set(protocol.candidates(study, "advdifformer-s")[1]) == {"learning_rate", "hidden_channels", "beta"}


def test_the_first_candidate_is_the_released_codes_where_it_differs_from_the_recipe(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(
        PROTOCOL.replace("published = [", "released = { advdifformer-s = { num_layers = 3 } }\npublished = [")
    )
    protocol = read_protocol(path)
    (study,) = protocol.studies
    before = protocol.candidates(read_protocol(path).studies[0], "mlp")
    assert protocol.candidates(study, "advdifformer-s")[0] == {"num_layers": 3}
    assert protocol.candidates(study, "mlp")[0] == {} and protocol.candidates(study, "mlp") == before


def test_one_and_two_processes_and_an_interrupted_trial_give_the_same_records(protocol, tmp_path):
    lines = []
    assert run_trial(protocol, tmp_path / "one", processes=1, device="cpu", say=lines.append) == 0
    one = read_trial(protocol, tmp_path / "one")
    # Two models: four candidates, two that go on, two seeds; then two with published settings and a curve of two.
    assert len(lines) == len(one) == 2 * (4 + 2 + 2) + 2 + 2
    run_trial(protocol, tmp_path / "two", processes=2, device="cpu", say=lambda line: None)
    assert outcomes(read_trial(protocol, tmp_path / "two")) == outcomes(one)

    class InterruptError(Exception):
        pass

    def interrupt(line, count=[0]):  # noqa: B006 -- counts over the calls of one trial
        count[0] += 1
        if count[0] % 5 == 0:
            raise InterruptError

    for _ in range(10):
        try:
            run_trial(protocol, tmp_path / "three", processes=1, device="cpu", say=interrupt)
            break
        except InterruptError:
            continue
    assert outcomes(read_trial(protocol, tmp_path / "three")) == outcomes(one)
    assert next(iter(Queue(protocol, one)), "nothing left") == "nothing left"


@pytest.mark.slow
def test_a_dask_cluster_of_two_workers_gives_the_same_records(protocol, tmp_path):
    distributed = pytest.importorskip("distributed")
    run_trial(protocol, tmp_path / "here", processes=1, device="cpu", say=lambda line: None)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        run_trial(protocol, tmp_path / "there", dask=cluster.scheduler_address, device="cpu", say=lambda line: None)
    there = read_trial(protocol, tmp_path / "there")
    assert outcomes(there) == outcomes(read_trial(protocol, tmp_path / "here"))
    assert {run.provenance.protocol for run in there.values()} == {protocol.hash}


def test_a_search_does_not_look_at_test_data_and_the_better_half_goes_on(protocol, tmp_path):
    run_trial(protocol, tmp_path, processes=1, device="cpu", say=lambda line: None)
    done = read_trial(protocol, tmp_path)
    (study,) = protocol.studies
    for model in study.models:
        first, second, final, *_ = stages(protocol, study, model, done)
        assert [stage.what for stage in (first, second, final)] == ["search", "search", "final"]
        for stage in (first, second):
            assert all(plan.only_valid and set(done[plan.key].outcome.metrics) == {"#1", "#2"} for plan in stage.plans)
            assert {plan.seed for plan in stage.plans} == {1000}
        values = {str(plan.settings | {"lr": plan.budget.learning_rate}): done[plan.key] for plan in first.plans}
        best = sorted(values, key=lambda name: values[name].outcome.valid_metric)[:2]
        assert {str(plan.settings | {"lr": plan.budget.learning_rate}) for plan in second.plans} == set(best)
        winner = min(second.plans, key=lambda plan: done[plan.key].outcome.valid_metric)
        assert all(plan.settings == winner.settings and plan.budget.epochs == 6 for plan in final.plans)
        assert [plan.seed for plan in final.plans] == [0, 1]


def test_runs_without_a_number_are_never_chosen_and_ties_keep_their_order():
    rung = [record(valid_metric=None, status="diverged"), record(valid_metric=2.0), record(valid_metric=1.0)]
    assert ranked(rung) == [2, 1, 0]
    assert ranked([record(valid_metric=1.0, metric="accuracy"), record(valid_metric=2.0, metric="accuracy")]) == [1, 0]
    assert ranked([record(seed=3), record(seed=4)]) == [0, 1]


def test_a_run_that_still_improves_is_extended_until_the_schedule_is_whole(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(PROTOCOL.replace("epochs = 6\nlongest = 6", "epochs = 6\nlongest = 20"))
    protocol = read_protocol(path)
    run_trial(protocol, tmp_path, processes=1, device="cpu", say=lambda line: None)
    done = read_trial(protocol, tmp_path)
    finals = [stage for stage in all_stages(protocol, done) if stage.what == "final"]
    lengths = {plan.budget.epochs for stage in finals for plan in stage.plans}
    assert lengths <= {6, 12, 20} and lengths != {6}  # six epochs are never enough
    for stage in finals:
        for plan in stage.plans:
            assert done[plan.key].converged or plan.budget.epochs == 20


def test_records_of_another_protocol_do_not_count_unless_it_is_amended(protocol, tmp_path):
    run_trial(protocol, tmp_path, processes=1, device="cpu", say=lambda line: None)
    assert all(run.provenance.protocol == protocol.hash for run in read(tmp_path / "tiny.jsonl"))
    path = tmp_path / "protocol.toml"
    path.write_text(PROTOCOL + "# changed\n")
    changed = read_protocol(path)
    assert changed.hash != protocol.hash and read_trial(changed, tmp_path) == {}
    amendment = f'\n[[amendment]]\ndate = 2026-01-01\nwhy = "a reason"\nreplaces = "{protocol.hash}"\n'
    path.write_text(PROTOCOL + amendment)
    assert len(read_trial(read_protocol(path), tmp_path)) == 20


def test_status_counts_what_is_done(protocol, tmp_path, capsys):
    path = str(tmp_path / "protocol.toml")
    (before,) = progress(protocol, {})
    assert before.search == (0, 12) and before.final == (0, 4) and before.left is None
    assert main(["trial", "run", "--protocol", path, "--results", str(tmp_path), "--jobs", "1", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20 and re.match(
        r"tiny +search +mlp block per_graph independent seed 1000: finished, valid mse", lines[0]
    )
    assert main(["trial", "status", "--protocol", path, "--results", str(tmp_path)]) == 0
    assert re.search(r"tiny +12/12 +4/4 +2/2 +2/2 +0 +\d+\.\d+ +0\.0", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rungs = [[4, 2], [2, 4]]", "rungs = [[3, 2]]", "must begin with all 4"),
        ('models = ["mlp"', 'models = ["mpl"', "unknown model 'mpl'"),
        ("superior performance", "one two three four five six seven eight nine", "more than eight words"),
    ],
)
def test_mistakes_in_a_protocol_are_named(tmp_path, old, new, message):
    path = Path(tmp_path, "protocol.toml")
    path.write_text(PROTOCOL.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_protocol(path)
    with pytest.raises(ValueError, match="no protocol at"):
        read_protocol(Path(tmp_path, "none.toml"))
