"""A data frame as a table: decimal points, the best, names, pairs of mean and deviation."""

import re

import numpy as np
import pandas as pd
import pytest

from advdiff import viz
from advdiff.results import names

FOUND = pd.DataFrame(
    {"roc_auc": [0.6121, 0.9, np.nan], "rmse": [10.5, 0.25, 0.25], "epochs": [5, 1200, 30], "by": ["hand", "us", "us"]},
    index=pd.Index(["mlp", "advdifformer-s", "ours"], name="model"),
)


def without_tags(page):
    hidden = re.sub(r'<span aria-hidden="true"[^>]*>[^<]*</span>', "", page)
    return re.sub("<[^>]*>", "|", hidden)


def test_text_has_points_below_each_other_and_names_that_people_use():
    assert repr(viz.table(FOUND, "An example.", best={"roc_auc": "roc_auc", "rmse": "min"}, digits={"rmse": 3})) == (
        "An example.\n"
        "model           ROC-AUC (%)  RMSE     epochs  by\n"
        "──────────────  ───────────  ───────  ──────  ────\n"
        "MLP             61.21        10.500       5   hand\n"
        "AdvDIFFormer-s  90.00*        0.250*  1,200   us\n"
        "ours             –            0.250*     30   us\n"
        "* best of its column"
    )


def test_names_can_be_left_as_they_are():
    text = repr(viz.table(FOUND, names=False))
    assert "advdifformer-s  0.90 " in text and "roc_auc" in text and "%" not in text


def test_the_page_marks_the_best_and_labels_rows_and_columns():
    made = viz.table(FOUND, "A < B.", label="table-one", best={"rmse": "rmse"})
    page = made._repr_html_()
    assert page == viz.table(FOUND.copy(), "A < B.", label="table-one", best={"rmse": "rmse"})._repr_html_()
    assert re.findall("<strong>(.*?)</strong>", page) == ["0.25", "0.25"]
    assert '<div class="numbers" id="table-one" role="region" aria-label="A &lt; B." tabindex="0"' in page
    assert "<caption>A &lt; B. Best of each column in bold.</caption>" in page
    assert page.count('scope="col"') == 5 and page.count('scope="row"') == 3
    assert "strong" not in viz.table(FOUND)._repr_html_() and "*" not in repr(viz.table(FOUND))


def test_pairs_of_mean_and_std_are_one_cell():
    runs = pd.DataFrame(
        {"valid": [1.0, 3.0, 4.0, 4.5], "test": [9.0, 10.0, 100.0, 160.0]},
        index=pd.MultiIndex.from_product([["mlp", "gcn"], [0, 1]], names=["model", "seed"]),
    )
    alone = runs.iloc[:3].groupby(level="model", sort=False).agg(["mean", "std"])
    assert repr(viz.table(alone, best="min", digits=1)).splitlines()[2:] == [
        "MLP    2.0 ± 1.4*    9.5 ± 0.7*",
        "GCN    4.0         100.0",
        "* best of its column",
    ]
    page = viz.table(alone, digits=1)._repr_html_()
    # What is not there takes its room, so that points are below each other at the right edge of a cell.
    assert '100.0<span aria-hidden="true" style="visibility: hidden"> ± 0.7</span>' in page
    both = viz.table(runs.groupby(level="model", sort=False).agg(["mean", "std"]), digits=1)
    assert "|  9.5|" not in without_tags(both._repr_html_()) and "± \u20070.7" in both._repr_html_()
    assert "130.0 ± 42.4" in repr(both) and "  9.5 ±  0.7" in repr(both)


def test_labels_in_levels_are_not_repeated():
    index = pd.MultiIndex.from_tuples([("block", "mlp"), ("block", "gcn"), ("none", "gcn")], names=["shift", "model"])
    made = viz.table(pd.DataFrame({"mse": [1.0, 2.0, 3.0]}, index=index))
    assert [line.split()[0] for line in repr(made).splitlines()[2:]] == ["block", "GCN", "none"]
    page = made._repr_html_()
    assert page.count(">block<") == 1 and 'scope="rowgroup" rowspan="2"' in page and page.count("<td") == 3


def test_bad_wishes_are_answered():
    with pytest.raises(ValueError, match="best names the column 'auc'; the table has: roc_auc, rmse, epochs, by"):
        viz.table(FOUND, best={"auc": "max"})
    with pytest.raises(ValueError, match="unknown best 'largest'"):
        viz.table(FOUND, best="largest")
    with pytest.raises(ValueError, match="digits names the column"):
        viz.table(FOUND, digits={"x": 1})


def test_an_empty_frame_has_its_heads():
    assert repr(viz.table(FOUND.iloc[:0])).startswith("model  ROC-AUC (%)  RMSE")
    assert "<tbody></tbody>" in viz.table(FOUND.iloc[:0])._repr_html_()


def test_every_model_and_metric_has_a_name():
    from advdiff import nn
    from advdiff.experiments.metrics import METRICS

    assert set(nn.model_names()) <= set(names.MODELS) == set(viz.STYLES)
    assert set(names.METRICS) == set(METRICS)
