"""The comparisons with scipy, PyG and on data sets compute what they say, on tiny sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from advdiff.bench import measure, report
from advdiff.bench.data_sets import per_data_set, steps_of
from advdiff.bench.problems import model, random_graph, training_step
from advdiff.bench.pyg_peers import against_pyg, peers, step_of
from advdiff.bench.scipy_peer import against_expm_multiply, generator, in_scipy
from advdiff.bench.suite import compiled
from advdiff.experiments.recipes import RECIPES


def test_the_operator_of_scipy_is_ours() -> None:
    L, _ = generator(60)
    operator, trace = in_scipy(L)
    dense = -L.to_dense().numpy()
    np.testing.assert_allclose(operator @ np.eye(60), dense, atol=1e-12)
    np.testing.assert_allclose(operator.H @ np.eye(60), dense.T, atol=1e-12)
    assert trace == pytest.approx(np.trace(dense))


@pytest.mark.parametrize("tol", [1e-6, 1e-12])
def test_against_scipy(tol: float) -> None:
    row = against_expm_multiply(200, tol, budget=0.0, bar=None)
    assert row.disagreement is not None and row.disagreement < 10 * tol
    assert "results differ by" in report.line(row)
    assert row.figure == pytest.approx(row.reference_milliseconds / row.milliseconds)


def test_every_peer_trains() -> None:
    graph = random_graph(80)
    for name, peer in peers().items():
        step_of(peer, graph)()
        unused = [n for n, p in peer.named_parameters() if p.grad is None]
        assert not unused or name == "PyG Polynormer", (name, unused)  # its first read-out is for the first phase


def test_against_pyg() -> None:
    rows = list(against_pyg(100, 0.0, {("exponential", "PyG SGFormer"): 1e9}))
    timed = [row for row in rows if row.milliseconds is not None]
    assert len(timed) == 9 and len({(row.what, row.against) for row in timed}) == 9
    assert [row.verdict for row in timed].count("missed") == 1
    shares = {row.what: row.figure for row in rows if row.unit == "%"}
    assert len(shares) == 6 and all(0.0 < share < 100.0 for share in shares.values())
    assert all(row.figure >= 0.0 for row in rows if row.unit == "kB")


def test_compiled_against_eager() -> None:
    row = compiled(60, 1, 0.0, "aot_eager")
    assert row.figure == pytest.approx(row.reference_milliseconds / row.milliseconds) and row.verdict


def test_every_model_on_a_data_set() -> None:
    rows = list(per_data_set("small_graphs", "quick", 0.0, ("advdifformer-s", "gcn", "mlp")))
    times = [row for row in rows if row.unit == "ms"]
    assert [row.what for row in times] == ["advdifformer-s", "gcn", "mlp"]
    assert all(row.figure > 0.0 and "small_graphs" in row.against for row in times)
    shares = {row.what: row.figure for row in rows if row.unit == "%"}
    assert len(shares) == 3 and all(0.0 < share < 100.0 for share in shares.values())


def test_the_steps_are_those_of_the_recipe() -> None:
    ((name, graph, step),) = steps_of("synthetic", "quick", ["advdifformer-i"])
    assert name == "advdifformer-i" and graph.num_nodes == RECIPES["synthetic"].quick.options["num_nodes"]
    step()


def test_data_that_are_not_there_give_no_rows(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    from advdiff.bench import data_sets
    from advdiff.datasets.files import MissingDataError

    def missing(name: str, **options: object) -> None:
        raise MissingDataError(name)

    monkeypatch.setattr(data_sets, "load", missing)
    assert list(per_data_set("twitch", "quick", 0.0)) == []


def test_share_and_peak_of_a_step() -> None:
    step = training_step(model("series", 1), random_graph(300))
    assert 0.0 < measure.share_of_sparse(step) < 1.0
    assert measure.share_of_sparse(lambda: torch.ones(100, 100) @ torch.ones(100, 100)) == 0.0
    peak = measure.peak_bytes(lambda: torch.ones(40_000_000).sum())
    assert peak is None or 150e6 < peak < 250e6
