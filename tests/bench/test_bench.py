"""``advdiff bench`` measures what it says and writes what it measured."""

import json
import time

import pytest

from advdiff.bench import measure, report
from advdiff.bench.problems import model, random_graph, training_step
from advdiff.bench.rows import Row
from advdiff.cli import main
from advdiff.operators.velocity import Velocity


def test_side_by_side_takes_the_best_of_several_rounds():
    calls = []
    best = measure.side_by_side(
        {"slow": lambda: (calls.append("slow"), time.sleep(0.02)), "fast": lambda: calls.append("fast")}, 0.0, least=3
    )
    assert calls == ["slow", "fast"] + (["slow"] + ["fast"] * 8) * 3  # a warm-up and three rounds, in turns
    assert best["fast"] < 0.02 <= best["slow"]


def test_sparse_time_counts_products_and_restores_the_method():
    original = Velocity.add_product_
    step = training_step(model("series", 1), random_graph(300))
    with measure.sparse_time() as spent:
        elapsed = measure.seconds(step)
    assert 0.0 < spent[0] < elapsed
    assert Velocity.add_product_ is original


@pytest.mark.parametrize(
    ("figure", "unit", "bar", "verdict"),
    [(21, "×", 20, "met"), (19, "×", 20, "missed"), (5, "GB", 6, "met"), (7, "GB", 6, "missed"), (1, "×", None, "")],
)
def test_verdicts(figure, unit, bar, verdict):
    row = Row("inverse", "dense", 10, 1, figure=figure, unit=unit, bar=bar)
    assert row.verdict == verdict
    assert verdict in report.line(row)


def test_json_is_written_atomically(tmp_path):
    path = tmp_path / "folder" / "bench.json"
    report.write_json(
        path, [Row("a", "b", 1, 1, 1.0, 3.0, 3.0)], [{"solver": "series", "nodes": 1, "milliseconds": 1.0}]
    )
    content = json.loads(path.read_text())
    assert content["rows"][0]["figure"] == 3.0
    assert content["machine"]["torch"]
    assert [p.name for p in path.parent.iterdir()] == ["bench.json"]


@pytest.mark.slow
def test_quick_run_from_the_shell(tmp_path, capsys):
    assert main(["bench", "--quick", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "series, K = 4" in out and "inverse, low rank" in out and "gradients differ by" in out
    content = json.loads((tmp_path / "bench.json").read_text())
    assert all(row["disagreement"] is None or row["disagreement"] < 1e-4 for row in content["rows"])
    assert {point["solver"] for point in content["scaling"]} == {"series", "inverse", "exponential", "inverse, dense"}
    assert (tmp_path / "bench.png").stat().st_size > 5_000


@pytest.mark.slow
def test_peak_memory_of_a_fresh_process():
    assert 0.1 < measure.peak_in_own_process("inverse", 500, 1) < 3.0


def test_unknown_command_says_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["frobnicate"])
    assert "bench" in capsys.readouterr().err
