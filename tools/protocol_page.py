"""Write book/protocol.md, the page that shows results/protocol.toml.

python -m tools.protocol_page            # write it
python -m tools.protocol_page --check    # fail if it is not what the protocol says
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from advdiff.experiments.protocol import Protocol, Statement, Study, read_protocol
from advdiff.viz import NAMES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "protocol.md"
HEAD = """# The protocol

*How the experiments of the paper are retrained and judged: written down before the first test metric was computed.*

```{{admonition}} In short
:class: tip
Every model of a study gets the same number of candidate settings, which are halved on validation data alone; the
winner is trained with the whole schedule of the paper or of the released code, with several seeds. {studies}
studies, {runs:,} runs, {statements} statements of the paper. One function of the records and this protocol gives
every verdict.
```

The protocol is the file `results/protocol.toml`, of which this page is made; its hash is `{hash}`, and every record
of the trial carries the hash under which it was made. The runs are made by the code of commit `{commit}`. To make
them on a machine of your own, or to go on with them, give `make trial`; `advdiff trial status` says how far they
are.

## The rules

1. **Equal search.** The first candidate of a model is the setting of its recipe, which for AdvDIFFormer is that of
   the released code; the others are drawn, with a fixed seed, from the axes below. The paper's grid for
   AdvDIFFormer is contained in them.
2. **Validation data only.** All candidates train for the epochs of the first rung, the best go on to the next. No
   run of the search evaluates test data, and its seed is not one of the final runs'.
3. **Trained to the end.** The final runs have the whole schedule, and stop early only by patience. Where a schedule
   is shorter than that of the released code, a run that chose its epoch in the last tenth is made again with twice
   as many epochs, and counts only when it did not, or when the schedule is whole.
4. **One rule for verdicts** ([`advdiff.results.verdict`](api/results.md)). A contrast is a difference of two means
   over seeds, with the variance pooled over all models of the study (seed by seed, on logarithms, where a seed
   draws the data too; on BACE and SIDER molecules are drawn again together with seeds). It is *right* or *wrong* if
   its 95 % interval lies wholly on one side of zero and the sign survives Holm's correction within its family,
   *level* if the interval lies within the margin, and *open* otherwise. A statement **holds** if all its contrasts
   are right, **holds with a condition** if the rest is level, **fails** if one is wrong, is **level** if all are
   level, and is **not decided** otherwise. "Among the best k" leaves k − 1 others free.
5. **Varied, not guessed.** What the paper does not give is run both ways: DPPIN with the paper's split and the
   graph of the stamp asked for, and with the released code's split and the graph of the stamp before.

"""


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(cell(each) for each in value)
    return str(value).replace("|", "\\|")


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *[[cell(each) for each in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def names(models: tuple[str, ...]) -> str:
    return ", ".join(NAMES.get(model, model) for model in models)


def study_row(study: Study) -> list[Any]:
    options = ", ".join(f"{name} {value}" for name, value in study.options.items())
    rungs = " → ".join(f"{entering} × {epochs}" for entering, epochs in study.rungs)
    return [
        f"`{study.name}`", options or "–", len(study.models), rungs, f"{study.epochs} ({study.patience})",
        len(study.seeds), study.column, study.margin,
    ]  # fmt: skip


def statement_row(statement: Statement, protocol: Protocol) -> list[Any]:
    where = f"{statement.place}: “{statement.phrase}”"
    return [f"`{statement.name}`", where, statement.restated, f"`{statement.curve or statement.study}`"]


def planned_runs(protocol: Protocol) -> int:
    """How many runs the whole trial needs."""
    total = 0
    for study in protocol.studies:
        searched = sum(entering for entering, _ in study.rungs)
        total += len(study.models) * (searched + len(study.seeds)) + len(study.published) * len(study.seeds)
    return total + sum(len(curve.values) * len(curve.seeds) for curve in protocol.curves)


def page(protocol: Protocol) -> str:
    parts = [
        HEAD.format(
            studies=len(protocol.studies),
            runs=planned_runs(protocol),
            statements=len(protocol.statements),
            hash=protocol.hash,
            commit=protocol.commit[:12],
        ),
        "## The studies\n",
        "Rungs are candidates × epochs; the margin is in the unit of the column, per cent for shares, of the logarithm "
        "for the synthetic study. `longest` is the whole schedule in every study.\n",
        table(
            ["study", "data", "models", "rungs", "epochs (patience)", "seeds", "judged by", "margin"],
            [study_row(study) for study in protocol.studies],
        ),
        table(["study", "models"], [[f"`{study.name}`", names(study.models)] for study in protocol.studies]),
        "## The axes of the search\n",
        "Those of `all` are every model's; a study may replace some of them (last table).\n",
        table(
            ["model", "axis", "values"],
            [[model, f"`{axis}`", values] for model, axes in protocol.axes.items() for axis, values in axes.items()],
        ),
        table(
            ["study", "axis", "values"],
            [[f"`{s.name}`", f"`{axis}`", values] for s in protocol.studies for axis, values in s.axes.items()],
        ),
        "## Curves\n",
        "The chosen setting of a model with one of its settings varied.\n",
        table(
            ["curve", "study", "model", "axis", "values", "seeds"],
            [
                [f"`{c.name}`", f"`{c.study}`", NAMES.get(c.model, c.model), f"`{c.axis}`", c.values, len(c.seeds)]
                for c in protocol.curves
            ],
        ),
        "## The statements\n",
        table(
            ["statement", "place and words", "restated", "decided by"],
            [statement_row(each, protocol) for each in protocol.statements],
        ),
        "## Amendments\n",
        table(["date", "why", "replaces"], [[a["date"], a["why"], f"`{a['replaces']}`"] for a in protocol.amendments])
        if protocol.amendments
        else "None so far.\n",
    ]
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    wanted = page(read_protocol(ROOT / "results" / "protocol.toml"))
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
            print("book/protocol.md is not what results/protocol.toml says; run: python -m tools.protocol_page")
            return 1
        return 0
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
