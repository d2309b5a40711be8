"""Verdicts on made-up records: they follow the numbers, and nothing is said from runs that are missing or cut."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from advdiff.experiments.protocol import read_protocol
from advdiff.experiments.records import Record
from advdiff.experiments.trial import all_stages, stages
from advdiff.results.compare import Contrast
from advdiff.results.verdict import _surviving, decide, relation, verdicts
from tests.experiments.made_up import changed, record
from tests.experiments.test_trial import PROTOCOL

SEEDS = 5


@pytest.fixture
def protocol(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(PROTOCOL.replace("seeds = [0, 1]", f"seeds = {list(range(SEEDS))}").replace("0.01", "0.05"))
    return read_protocol(path)


def made(protocol, ours, theirs, epoch=1, seeds=None):
    """All records of the protocol, with these test errors of AdvDIFFormer-s and the MLP, seed by seed."""
    done: dict[str, Record] = {}
    while True:
        missing = [plan for stage in all_stages(protocol, done) for plan in stage.missing(done)]
        missing = [plan for plan in missing if seeds is None or plan.only_valid or plan.seed in seeds]
        if not missing:
            return done
        for plan in missing:
            values = ours if plan.model == "advdifformer-s" else theirs
            error = 1.0 if plan.only_valid else values[plan.seed]
            template = changed(
                record(), valid_metric=error, metrics={"a": error, "b": error, "c": error}, train=["a"], valid=["b"],
                test=["c"], chosen_epoch=epoch, epochs=plan.budget.epochs,
            )  # fmt: skip
            done[plan.key] = replace(template, plan=plan)


def near(centre, spread=0.01):
    return [centre + spread * each for each in (-1.0, -0.5, 0.0, 0.5, 1.0)]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (near(0.5), near(0.8), "holds"),
        (near(0.8), near(0.5), "fails"),
        (near(0.5), near(0.51), "level"),
        (near(0.5, 0.4), near(0.6, 0.4), "not decided"),
    ],
)
def test_a_verdict_follows_the_numbers(protocol, ours, theirs, expected):
    assert verdicts(protocol, made(protocol, ours, theirs))["tiny-best"].verdict == expected


def test_one_record_that_lets_the_interval_cross_zero_changes_the_verdict(protocol):
    done = made(protocol, near(0.5), near(0.8))
    assert verdicts(protocol, done)["tiny-best"].verdict == "holds"
    (study,) = protocol.studies
    final = next(s for s in stages(protocol, study, "advdifformer-s", done) if s.what == "final")
    key = final.plans[0].key
    done[key] = changed(done[key], metrics={"a": 1.0, "b": 1.0, "c": 3.0})
    assert verdicts(protocol, done)["tiny-best"].verdict == "not decided"


def test_more_seeds_need_no_change_but_in_the_protocol(protocol, tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(path.read_text().replace("seeds = [0, 1, 2, 3, 4]", "seeds = [0, 1, 2, 3, 4, 5]"))
    more = read_protocol(path)
    done = made(more, [*near(0.5), 0.505], [*near(0.8), 0.803])
    verdict = verdicts(more, done)["tiny-best"]
    assert verdict.verdict == "holds" and len(verdict.contrasts) == 1


def test_nothing_is_said_from_missing_runs(protocol):
    verdict = verdicts(protocol, made(protocol, near(0.5), near(0.8), seeds=[0, 1, 2]))["tiny-best"]
    assert verdict.verdict == "not decided" and "2 of 5 runs of" in verdict.waiting
    assert "not finished" in verdicts(protocol, {})["tiny-best"].waiting


def test_nothing_is_said_from_runs_that_were_cut(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(
        PROTOCOL.replace("longest = 6", "longest = 600").replace("seeds = [0, 1]", "seeds = [0, 1, 2, 3, 4]")
    )
    protocol = read_protocol(path)
    done = made(protocol, near(0.5), near(0.8))
    assert verdicts(protocol, done)["tiny-best"].verdict == "holds"
    late = {key: changed(each, chosen_epoch=each.plan.budget.epochs) for key, each in done.items()}
    verdict = verdicts(protocol, late)["tiny-best"]
    assert verdict.verdict == "not decided" and "missing" in verdict.waiting  # the longer runs that they ask for


def test_a_sign_needs_holms_correction_and_a_margin_beats_it():
    clear = Contrast("a", "b", 0.3, 0.1, 0.5, (5, 5), p=0.01)
    assert relation(clear, margin=0.05, sign_survives=True) == "right"
    assert relation(clear, margin=0.05, sign_survives=False) == "open"
    assert relation(clear, margin=0.6, sign_survives=True) == "level"
    assert relation(replace(clear, gain=-0.3, low=-0.5, high=-0.1), margin=0.05, sign_survives=True) == "wrong"


def test_holms_correction_by_hand():
    def contrast(p):
        return Contrast("a", "b", 0.3, 0.1, 0.5, (5, 5), p=p)

    families = {"one": ("x", "y"), "two": ("z",)}
    statements = [SimpleNamespace(name=name, family=family) for family, names in families.items() for name in names]
    # The four of the first family may be at most 1/80, 1/60, 1/40 and 1/20: the second is larger, and ends it.
    found = {"x": [contrast(0.03), contrast(0.01)], "y": [contrast(0.02), contrast(0.04)], "z": [contrast(0.04)]}
    assert _surviving(SimpleNamespace(statements=statements), found) == {("x", 1), ("z", 0)}
    found["y"][0] = contrast(0.015)
    assert _surviving(SimpleNamespace(statements=statements), found) == {("x", 1), ("y", 0), ("z", 0)}


@pytest.mark.parametrize(
    ("relations", "top", "expected"),
    [
        (["right"] * 3, 1, "holds"),
        (["right", "right", "wrong"], 1, "fails"),
        (["right", "right", "wrong"], 2, "holds"),
        (["right", "wrong", "wrong"], 2, "fails"),
        (["right", "level", "level"], 1, "holds with a condition"),
        (["level", "level"], 1, "level"),
        (["right", "open"], 1, "not decided"),
        (["right", "open"], 2, "holds"),
        (["level", "open"], 2, "not decided"),
    ],
)
def test_decide(relations, top, expected):
    assert decide(relations, top) == expected
