"""The shell: commands, JSON, and one sentence for a mistake."""

import json
import subprocess
import sys

import pytest

from advdiff.cli import main

SMALL = ["--num-nodes", "30", "--set", "epochs=3", "--device", "cpu", "--quiet"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.delenv("ADVDIFF_PROFILE", raising=False)


def test_run_prints_the_table_and_table_prints_it_again(tmp_path, capsys):
    command = ["run", "synthetic", "--shift", "homophily", "block", "--model", "mlp", "advdifformer-s", "--seeds", "2"]
    assert main([*command, *SMALL, "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "shift homophily, labels per_graph" in printed and "8 runs in" in printed and "epochs 3" in printed
    assert main(["table", "synthetic", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() in printed
    assert main(["table", "synthetic", "--results", str(tmp_path), "--markdown", "--shift", "block"]) == 0
    assert capsys.readouterr().out.count("| mlp |") == 1
    assert main(["table", "synthetic", "--results", str(tmp_path), "--json", "--model", "mlp"]) == 0
    assert len(json.loads(capsys.readouterr().out)["sections"]) == 2


def test_run_prints_records_as_json(tmp_path, capsys):
    command = ["run", "synthetic", "--shift", "none", "--labels", "shared", "--edges", "common", "--model", "mlp"]
    more = ["--first-seed", "4", "--seeds", "1", "--data-seed", "1", "--json", "--results", str(tmp_path)]
    assert main([*command, *SMALL, *more]) == 0
    (record,) = (each["plan"] for each in json.loads(capsys.readouterr().out))
    assert (record["seed"], record["data_seed"], record["budget"]["epochs"]) == (4, 1, 3)
    expected = {"shift": "none", "labels": "shared", "edges": "common", "num_nodes": 30, "graph_share": 0.5}
    assert record["options"] == expected


def test_tune(tmp_path, capsys):
    command = ["tune", "synthetic", "--shift", "block", "--model", "advdifformer-s", "--results", str(tmp_path)]
    assert main([*command, *SMALL, "--grid", "beta=0.2,0.5", "hidden-channels=4", "order=1", "lr=0.01"]) == 0
    printed = capsys.readouterr().out
    assert "advdifformer-s on synthetic shift=block" in printed and "best of 2" in printed
    assert main([*command, *SMALL, "--points", "2", "--json"]) == 0
    (tuned,) = json.loads(capsys.readouterr().out)
    assert len(tuned["tried"]) == 2 and tuned["settings"] == tuned["tried"][0][0]


def test_list_and_data(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert "--shift: homophily, density, block, none" in printed and "advdifformer-e" in printed
    assert main(["list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"experiments", "models"}
    assert main(["data", "status", "--json"]) == 0
    assert "needs no files" in json.loads(capsys.readouterr().out)["datasets"]["synthetic"]["state"]
    assert main(["data", "status"]) == 0
    assert main(["data", "fetch", "synthetic"]) == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["run", "synthetic", "--shift", "wind"],
            "unknown shift 'wind'; choose one of: homophily, density, block, none",
        ),
        (["run", "synthetic", "--model", "gnn"], "unknown model 'gnn'; choose one of: all, advdifformer-s"),
        (["run", "synthetic", "--profile", "slow"], "unknown profile 'slow'; choose one of: quick, full"),
        (["run", "synthetic", "--device", "tpu"], "unknown device 'tpu'; choose one of: auto, cpu, cuda, mps"),
        (["run", "synthetic", "--jobs", "0"], "--jobs is 0"),
        (["run", "synthetic", "--seeds", "0"], "--seeds is 0"),
        (["run", "synthetic", "--set", "beta"], "--set takes name=value"),
        (["run", "synthetic", "--model", "mlp", "--set", "beta=1"], "mlp has no setting 'beta'; there are:"),
        (["run", "synthetic", "--set", "epochs=many"], "epochs is 'many'"),
        (["tune", "synthetic", "--grid", "beta"], "--grid takes name=value,value"),
        (["table", "synthetic"], "no records of synthetic"),
        (["data", "fetch", "nonsense"], "unknown data set 'nonsense'"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path, capsys, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err and output.err.startswith("advdiff: ") and output.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["frobnicate"], ["run", "frobnicate"], ["run"], []])
def test_unknown_commands_name_what_there_is(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main(command)
    assert stopped.value.code == 2
    assert capsys.readouterr().err


def test_a_failed_run_has_its_own_exit_code(tmp_path, capsys):
    command = ["run", "synthetic", "--shift", "block", "--model", "advdifformer-s", "--results", str(tmp_path)]
    assert main([*command, *SMALL, "--seeds", "1", "--set", "heads=0"]) == 1
    assert "1 of 1 runs failed" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["--help"], ["run", "twitch", "--help"]])
def test_help_does_not_wait_for_torch(command):
    code = f"import sys; sys.argv[1:] = {command!r}\nfrom advdiff.cli import main\ntry: main()\n"
    code += "finally: print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "usage: advdiff" in done.stdout and done.stdout.splitlines()[-1] == "False False"
