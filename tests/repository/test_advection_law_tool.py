"""The command behind results/advection_law.jsonl: what is there is kept, what is missing is made, in one order."""

from __future__ import annotations

import json

from tools import advection_law as tool


def small_plan():
    def add(kind, seed):
        return ((("kind", kind), ("seed", seed)), lambda: [{"kind": kind, "seed": seed, "value": seed / 3}])

    return dict(add(kind, seed) for kind in ("linear", "trained") for seed in range(3))


def test_an_interrupted_command_goes_on_where_it_stood(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(tool, "plan", small_plan)
    monkeypatch.setattr(tool, "ProcessPoolExecutor", in_this_process(made))
    monkeypatch.setattr(tool, "as_completed", iter)
    file = tmp_path / "rows.jsonl"
    other = {"kind": "trained", "seed": 7, "value": 1.0}  # of no task: an older plan
    kept = {"kind": "trained", "seed": 1, "value": 0.5}
    file.write_text(f"{json.dumps(other)}\n{json.dumps(kept)}\n")
    monkeypatch.setattr("sys.argv", ["advection_law", "--file", str(file)])
    tool.main()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["kind"], row["seed"]) for row in rows] == [(k, s) for k in ("linear", "trained") for s in range(3)]
    assert rows[4] == kept and rows[2]["value"] == 0.6667  # four digits
    assert len(made) == 5
    tool.main()
    assert len(made) == 5
    monkeypatch.setattr("sys.argv", ["advection_law", "--file", str(file), "--again", "trained"])
    tool.main()
    assert len(made) == 8 and json.loads(file.read_text().splitlines()[4])["value"] == 0.3333


def test_a_recorded_number_that_is_another_is_seen(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "plan", small_plan)
    file = tmp_path / "rows.jsonl"
    tool.write(file, small_plan(), dict(map(tool.run, small_plan())))
    tool.check(file, 6)
    assert capsys.readouterr().out.count("as recorded") == 6
    file.write_text(file.read_text().replace("0.6667", "0.68"))
    tool.check(file, 6)
    assert capsys.readouterr().out.count("differs in ['value']") == 2


def test_the_plan_has_what_the_chapter_shows():
    keys = [dict(key) for key in tool.plan()]
    trained = [key for key in keys if key["kind"] == "trained"]
    for solver in ("exponential", "inverse", "series"):
        mine = [key for key in trained if key["solver"] == solver and key["signal"] == "block"]
        assert {key["shift"] for key in mine} == {"homophily", "density", "block"}
        assert {key["seed"] for key in mine} == set(range(5))
    assert {key["pure"] for key in trained if key["solver"] == "exponential"} == {False, True}


def in_this_process(made):
    class Done:
        def __init__(self, value):
            self.value = value

        def result(self):
            return self.value

    class Pool:
        def __init__(self, processes): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def submit(self, function, key):
            made.append(key)
            return Done(function(key))

    return Pool
