"""Recipe, data set and training fit together: one epoch of a run and its table, on small files."""

import math

import pytest

from advdiff.datasets import load
from advdiff.experiments import recipes, run
from advdiff.results import table
from tests import miniatures

CASES = [
    ("dppin", {"task": "node", "snapshots": "code"}),
    ("dppin", {"task": "edge", "graph": "previous", "snapshots": "code"}),
    ("dppin", {"task": "link", "snapshots": "code"}),
    ("ham", {}),
    ("molbace", {}),
    ("molsider", {}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: value if isinstance(value, str) else None)
def test_a_run_on_small_files(data_folder, tmp_path, name, options):
    if name == "ham":
        pytest.importorskip("rdkit")
    miniatures.write(name, data_folder)
    small = {"epochs": 1, "hidden_channels": 8, "num_layers": 1}
    (record,) = run(name, "advdifformer-s", settings=small, results=tmp_path, progress=False, **options)
    data = load(name, **options)
    assert record.outcome.status == "finished" and record.outcome.metric == data.metric
    assert set(record.outcome.metrics) == set(data.environments)
    assert all(value is not None and math.isfinite(value) for value in record.outcome.metrics.values())
    made = table(name, tmp_path)
    assert made.metric == data.metric
    ((line,),) = [section.lines for section in made.sections]
    assert set(line.cells) == set(recipes.find(name).columns)
    assert all(cell.mean is not None for cell in line.cells.values())


def test_two_metrics_in_one_table(data_folder, tmp_path):
    miniatures.write("dppin", data_folder)
    small = {"epochs": 1, "hidden_channels": 8}
    run("dppin", "mlp", task=["node", "link"], snapshots="code", settings=small, results=tmp_path, progress=False)
    made = table("dppin", tmp_path)
    assert "RMSE or ROC-AUC (%)" in made.caption
    node, link = (section.lines[0].cells["test worst"] for section in made.sections)
    assert node.digits == 3 and link.digits == 2 and 1 < link.mean < 100
