"""The protocol of the trial: sound, shown by its page, true to the paper, and older than the records made under it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from advdiff import nn
from advdiff.experiments import read
from advdiff.experiments.protocol import read_protocol
from advdiff.experiments.recipes import find
from advdiff.experiments.trial import file_of
from tools.protocol_page import PAGE, page

ROOT = Path(__file__).parents[2]
PROTOCOL = read_protocol(ROOT / "results" / "protocol.toml")
PAPER = ROOT.parent / "shared" / "paper" / "advdifformer.tex"


def test_the_page_shows_the_protocol():
    assert PAGE.read_text(encoding="utf-8") == page(PROTOCOL), "run: python -m tools.protocol_page"


@pytest.mark.parametrize("study", PROTOCOL.studies, ids=lambda study: study.name)
def test_every_model_of_a_study_has_as_many_candidates(study):
    options = find(study.experiment).options
    assert set(study.options) <= set(options)
    for model in study.models:
        possible = 1
        for values in study.space(PROTOCOL.axes, model).values():
            possible *= len(set(map(str, values)))
        assert len(PROTOCOL.candidates(study, model)) == study.candidates <= possible
    assert study.search_seed not in study.seeds and len(study.seeds) >= 5


@pytest.mark.parametrize("model", [name for name in PROTOCOL.axes if name != "all"])
def test_every_value_of_an_axis_can_be_built_and_the_default_is_among_them(model):
    settings = nn.model_settings(model)
    for axis, values in PROTOCOL.axes[model].items():
        assert settings[axis] in values and len(set(values)) == len(values) >= 2, axis
        assert axis not in PROTOCOL.axes["all"], axis
        for value in values:
            nn.build(model, 4, 16, 2, **{axis: value})


@pytest.mark.parametrize("experiment", ["twitch", "arxiv", "dppin", "molbace", "molsider", "ham"])
def test_the_papers_grid_is_contained_in_the_axes(experiment):
    for study in (each for each in PROTOCOL.studies if each.experiment == experiment):
        for model in study.published:
            space = study.space(PROTOCOL.axes, model)
            for axis, values in find(experiment).grid.items():
                if axis in space:
                    assert set(values) <= set(space[axis]), f"{study.name}, {model}: {axis}"


@pytest.mark.parametrize("statement", PROTOCOL.statements, ids=lambda statement: statement.name)
def test_a_statement_names_what_the_protocol_and_the_paper_have(statement):
    curves = {curve.name: curve for curve in PROTOCOL.curves}
    if statement.curve:
        assert set(statement.better) | set(statement.than) <= set(curves[statement.curve].values)
    else:
        study = PROTOCOL.study(statement.study)
        assert {statement.model, *statement.others} <= set(study.models)
        assert 1 <= statement.top <= max(len(statement.others), 1)
    if PAPER.exists():
        text = PAPER.read_text(encoding="utf-8")
        assert statement.phrase in re.sub(r"\s+", " ", text)
        assert f"\\label{{{statement.label}}}" in text


def test_the_protocol_is_older_than_the_records_made_under_it():
    found = [record for study in PROTOCOL.studies for record in read(file_of(study, ROOT / "results" / "trial"))]
    known = {PROTOCOL.hash, *PROTOCOL.earlier}
    assert {record.provenance.protocol for record in found} <= known
    git = ["git", "log", "--reverse", "--format=%cI", "--", "results/protocol.toml"]
    dates = subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout.split()
    if found and dates:  # in a clone with its history
        assert min(record.provenance.time for record in found) >= dates[0].replace("Z", "+00:00")
