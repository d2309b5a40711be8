"""Tables: means over seeds, marks, variants; and the paper's numbers."""

import math
import statistics

import pytest

from advdiff.experiments import records, run
from advdiff.experiments.plan import resolve
from advdiff.experiments.recipes import RECIPES
from advdiff.results import paper, paper_data, table
from advdiff.results.compare import Contrast
from advdiff.results.contrast_table import contrast_table
from advdiff.results.layout import Entry, Layout
from advdiff.results.measured import Cell
from advdiff.results.paper import Reported
from advdiff.results.tables import tabulate
from tests.experiments.made_up import changed, record


@pytest.mark.parametrize(
    ("mean", "std", "reported", "mark"),
    [
        (62.0, 0.3, Reported(62.5, 0.1), ""),  # 0.5 < 2·√0.1 = 0.63
        (61.8, 0.3, Reported(62.5, 0.1), "▼"),
        (63.2, 0.3, Reported(62.5, 0.1), "▲"),
        (62.8, None, Reported(62.5, 0.1), "▲"),  # one seed: the paper's deviation alone
        (0.2, 0.01, Reported(0.147), "▲"),  # no deviation in the paper
        (0.2, None, Reported(0.147), ""),  # none at all: nothing can be said
        (0.2, 0.01, Reported(None, words="OOM"), ""),
        (None, None, Reported(62.5, 0.1), ""),
        (10.0, 0.1, None, ""),
    ],
)
def test_marks(mean, std, reported, mark):
    assert Cell(mean, std, reported).mark == mark
    assert Cell(mean, std, reported, comparable=False).mark == ""


def twitch(model, seed, value, **settings):
    regions = dict.fromkeys(("DE", "ENGB", "ES", "FR", "PTBR", "RU", "TW"), value)
    usual, budget = resolve(RECIPES["twitch"], model, "full", settings)
    return record(
        seed, experiment="twitch", metric="roc_auc", model=model, settings=usual,
        budget=budget, profile="full", options={}, data_seed=None, metrics=regions,
        train=["DE"], valid=["ENGB"], test=["ES", "FR", "PTBR", "RU", "TW"],
    )  # fmt: skip


def test_measured_stands_beside_reported(tmp_path):
    found = [twitch("advdifformer-s", seed, 0.62 + 0.004 * seed) for seed in range(3)]
    found += [twitch("mlp", 0, 0.7), twitch("advdifformer-s", 0, 0.5, beta=0.2)]
    for each in found:
        records.append(tmp_path / "twitch.jsonl", each)
    made = table("twitch", tmp_path)
    (section,) = made.sections
    assert [line.label for line in section.lines] == ["mlp", "advdifformer-s", "advdifformer-s beta=0.2"]
    cell = section.lines[1].cells["test mean"]
    assert cell.mean == pytest.approx(62.4) and cell.std == pytest.approx(statistics.stdev([62.0, 62.4, 62.8]))
    assert cell.reported == Reported(62.51, 0.07) and cell.mark == ""
    assert str(cell.entry()) == "62.40 ± 0.40 [62.51 ± 0.07]"
    assert str(section.lines[0].cells["test mean"].entry()) == "70.00 [61.12 ± 0.16]▲"
    assert section.lines[2].cells["test mean"].reported is None, "the paper's number belongs to the usual settings"
    text, html, markdown = str(made), made._repr_html_(), made.to_markdown()
    for output in (text, markdown):
        assert "62.40 ± 0.40 [62.51 ± 0.07]" in output and "▲" in output and "two standard deviations" in output
    assert "70.00        [61.12 ± 0.16]▲" in text, "the paper's numbers stand below each other"
    assert (
        '62.40<span class="spread"> ± 0.40</span><br><small>[62.51 ± 0.07]' in html
        and "[61.12 ± 0.16]▲</small>" in html
    )
    assert "two standard deviations" in html and ">AdvDIFFormer-s beta=0.2<" in html
    assert repr(made) == text
    assert html.count("<tr>") == 4 and "| mlp | 1 |" in markdown
    assert made.as_dict()["sections"][0]["lines"][0]["cells"]["test mean"]["mark"] == "▲"

    assert len(table("twitch", tmp_path, variants=False).sections[0].lines) == 2
    assert len(table("twitch", tmp_path, model="mlp").sections[0].lines) == 1
    assert len(table("twitch", tmp_path, settings={"beta": 0.2}).sections[0].lines) == 1
    assert table("twitch", tmp_path, profile="quick").sections == []


def test_another_budget_is_another_section():
    runs = [twitch("mlp", 0, 0.6), twitch("mlp", 0, 0.7, epochs=100, learning_rate=1e-3), twitch("cde", 0, 0.5)]
    usual, short = tabulate(RECIPES["twitch"], runs).sections
    assert [line.label for line in usual.lines] == ["mlp", "cde learning_rate=0.001 epochs=100"]  # the recipe's own
    assert short.title == "profile full, epochs 100, learning_rate 0.001"
    assert [line.label for line in short.lines] == ["mlp"]


def test_runs_that_went_wrong_are_counted(tmp_path):
    good, bad = twitch("mlp", 0, 0.6), twitch("mlp", 1, 0.6)
    made = tabulate(RECIPES["twitch"], [good, changed(bad, status="diverged", metrics={}, valid_metric=None)])
    assert "mlp (1 diverged)  2" in str(made)


def test_stand_in_features_are_shown_beside_the_paper_but_not_marked():
    usual, budget = resolve(RECIPES["arxiv"], "mlp", "full")
    arxiv = changed(
        twitch("mlp", 0, 0.6), experiment="arxiv", metric="accuracy", settings=usual, budget=budget,
        options={"features": "text"}, train=["train"], valid=["valid"],
        test=["2018", "2019", "2020"], metrics=dict.fromkeys(("train", "valid", "2018", "2019", "2020"), 0.6),
    )  # fmt: skip
    text = str(tabulate(RECIPES["arxiv"], [arxiv]))
    assert "60.00 [49.91 ± 0.59]" in text and "]▲" not in text and "not comparable" in text


@pytest.mark.usefixtures("toy")
def test_a_table_of_real_records(tmp_path):
    found = run("toy", seeds=2, results=tmp_path)
    made = table("toy", tmp_path)
    assert [section.title for section in made.sections] == [
        f"kind {kind}, num_nodes 10, profile quick" for kind in ("easy", "hard")
    ]
    line = made.sections[0].lines[0]
    own = [r for r in found if r.plan.model == "linear" and r.plan.options["kind"] == "easy"]
    assert line.cells["test mean"].mean == pytest.approx(
        sum(r.outcome.metrics["c"] + r.outcome.metrics["d"] for r in own) / 4
    )
    assert line.cells["test worst"].mean == pytest.approx(
        sum(max(r.outcome.metrics["c"], r.outcome.metrics["d"]) for r in own) / 2
    )
    assert line.cells["valid"].mean == pytest.approx(sum(r.outcome.valid_metric for r in own) / 2)
    assert "In brackets" not in made.caption
    assert len(table("toy", tmp_path, kind="hard").sections) == 1
    (column,) = table("toy", tmp_path, kind="hard", columns=["d"]).columns
    assert column == "d"
    with pytest.raises(ValueError, match=r"no option 'shift'.*kind"):
        table("toy", tmp_path, shift="x")


@pytest.mark.usefixtures("toy")
def test_runs_on_fixed_data_and_tuning_runs_are_not_mixed_with_others(tmp_path):
    from advdiff.experiments import tune

    file = tmp_path / "all.jsonl"
    run("toy", "linear", seeds=3, results=file, kind="easy")
    run("toy", "linear", seeds=3, results=file, kind="easy", data_seed=0)
    tune("toy", "linear", results=file, kind="easy")
    lines = table("toy", file).sections[0].lines
    assert [(line.label, line.seeds) for line in lines] == [("linear", 3), ("linear data_seed=0", 2)]


def test_a_table_without_records_says_so(tmp_path):
    assert "no records" in str(table("synthetic", tmp_path))
    with pytest.raises(ValueError, match="unknown experiment"):
        table("nonsense", tmp_path)


# ------------------------------------------------------------------------------------------------ the paper's numbers


def test_the_tables_have_all_their_rows():
    assert {number: len(each.rows) for number, each in paper.TABLES.items()} == {1: 12, 2: 9, 6: 12, 7: 3, 8: 1}
    assert str(paper.TABLE_1.rows["graphtrans"]["2018"]) == "OOM"
    assert str(paper.TABLE_2.rows["sgc"]["edge:valid"]) == "0.193 ± 0.000"
    assert len(paper_data.TABLE_3) == 11 and len(paper_data.TABLE_4) == 5 and len(paper_data.TABLE_5) == 3


def test_the_inconsistencies_that_the_notes_name_are_there():
    means = {
        model: statistics.fmean(row[region].mean for region in ("ES", "FR", "PTBR", "RU", "TW"))
        for model, row in paper.TABLE_6.rows.items()
    }
    off = {m for m, value in means.items() if abs(value - paper.TABLE_1.rows[m]["Twitch"].mean) > 0.011}
    assert off == {"a-dgn", "cde", "difformer"}
    assert [round(means[m], 2) for m in ("a-dgn", "cde", "difformer")] == [60.79, 60.94, 62.20]
    assert paper.TABLE_6.rows["graphtrans"] == paper.TABLE_6.rows["grand"]
    years = ("2018", "2019", "2020")
    ablated, grand = paper.TABLE_7.rows["without-diffusion"], paper.TABLE_1.rows["grand"]
    assert all(ablated[year] == grand[year] for year in years)
    full, ours = paper.TABLE_7.rows["advdifformer-s"], paper.TABLE_1.rows["advdifformer-s"]
    assert all(full[year] == ours[year] for year in years)
    theta, main = paper.TABLE_8.rows["advdifformer-i"]["1.0"], paper.TABLE_2.rows["advdifformer-i"]["edge:mean"]
    assert abs(theta.mean - main.mean) > 3 * main.std


def test_reported_numbers_belong_to_columns_and_models_of_the_recipes():
    for name, options in (("twitch", {}), ("arxiv", {}), ("dppin", {"task": "node"}), ("dppin", {"task": "edge"})):
        rows = paper.reported(name, options)
        # The paper's tables leave AdvDIFFormer-i out, except for DPPIN.
        left_out = set() if name == "dppin" else {"advdifformer-i"}
        assert {row.partition(" ")[0] for row in rows} == set(RECIPES[name].models) - left_out
        assert all(set(row) <= set(RECIPES[name].columns) for row in rows.values())
        assert all(cell.mean is None or math.isfinite(cell.mean) for row in rows.values() for cell in row.values())
    assert paper.reported("dppin", {"task": "edge"})["mlp"]["valid"] == Reported(0.150, 0.004)
    assert paper.reported("synthetic") == {}


def test_each_caveat_belongs_to_its_own_experiment():
    for experiment, options in (
        ("arxiv", {"features": "text"}),
        ("dppin", {"snapshots": "all"}),
        ("dppin", {"split": "code"}),
    ):
        assert paper.caveat(experiment, options)
        assert paper.caveat("twitch", options) == ""
        assert paper.caveat(experiment) == ""


def test_deviations_stand_below_each_other_whatever_the_digits_before_them():
    rows = [("a", Entry("1.25", "0.1")), ("b", Entry("10.5", "0.2")), ("c", Entry("3", "0.3"))]
    lines = repr(Layout(("model", "n"), rows)).splitlines()[2:]
    assert len({line.index("±") for line in lines}) == 1
    assert lines[0].index(".") == lines[1].index(".")


def test_the_column_of_seeds_can_be_left_out(tmp_path):
    for seed in range(3):
        records.append(tmp_path / "twitch.jsonl", twitch("mlp", seed, 0.6))
    full, narrow = (table("twitch", tmp_path, columns=["DE"], count_seeds=each).layouts() for each in (True, False))
    assert [tuple(each.heads) for each in (*full, *narrow)] == [("model", "seeds", "DE"), ("model", "DE")]
    assert full[0].rows[0][0] == narrow[0].rows[0][0] and full[0].rows[0][2] == narrow[0].rows[0][1]


def test_contrasts_have_their_interval_and_verdict():
    found = [
        Contrast("gcn", "mlp", 2.0, 0.5, 3.5, (3, 3), 0.012),
        Contrast("gcn", "mine", -1.0, -2.5, 0.5, (3, 3), 0.3),
    ]
    made = contrast_table(found, "Gains.", form="+.1f", with_p=True)
    assert made.heads == ("over", "gain", "verdict")
    assert made.rows[0] == ("MLP", Entry("+2.0", note="[+0.5, +3.5]"), Entry("better", note="p = 0.012"))
    assert made.rows[1] == ("mine", Entry("-1.0", note="[-2.5, +0.5]"), Entry("within the noise", note="p = 0.3"))
    assert [row[2] for row in contrast_table(found).rows] == ["better", "within the noise"]
