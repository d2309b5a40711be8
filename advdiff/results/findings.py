"""What a study of the trial found: the numbers of a chapter, once every run of the study is made and none was cut.

Until then there is nothing to show, so that no half-made table is read as a result:

    found = findings("twitch")
    if found.complete:
        viz.table(found.scores(), "…", best=found.metric)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from advdiff.experiments import metrics
from advdiff.experiments.protocol import PATH, Protocol, Study, read_protocol
from advdiff.experiments.records import Record
from advdiff.experiments.trial import FOLDER, Records, is_converged, read_trial, stages
from advdiff.results.compare import Contrast, pooled
from advdiff.results.frame import value_of
from advdiff.results.paper import reported
from advdiff.results.verdict import Verdict, goodness, verdicts


@dataclass(frozen=True)
class Findings:
    """One study, read from the records.

    Attributes:
        done: key → record, of the whole trial.

    Example:
        >>> from advdiff.experiments.protocol import Protocol, Study
        >>> from advdiff.results import Findings
        >>> study = Study("tiny", "molbace", ("mlp",), 1, ((1, 2),), 2, 2, 2, (0,), "test mean", 0.1)
        >>> Findings(Protocol("", {}, (study,), (), (), (), ""), study, done={}).complete
        False
    """

    protocol: Protocol
    study: Study
    done: Records

    @cached_property
    def runs(self) -> dict[tuple[str, str], list[Record]]:
        """(model, stage) → its records, for stages whose runs are all made; "search" holds the last rung."""
        found = {}
        for model in self.study.models:
            for stage in stages(self.protocol, self.study, model, self.done):
                if not stage.missing(self.done):
                    found[model, stage.what] = [self.done[plan.key] for plan in stage.plans]
        return found

    @cached_property
    def complete(self) -> bool:
        """Whether every run of the study is made, and every final one may be judged."""
        curves = [(each.model, each.name) for each in self.protocol.curves if each.study == self.study.name]
        needed = [(model, "final") for model in self.study.models] + curves
        needed += [(model, "published") for model in self.study.published]
        return all(
            stage in self.runs and all(is_converged(self.study, record) for record in self.runs[stage])
            for stage in needed
        )

    @property
    def metric(self) -> str:
        """Of the data."""
        return next(iter(self.runs.values()))[0].outcome.metric

    def scores(self, columns: Sequence[str] = (), what: str = "final") -> pd.DataFrame:
        """Model → mean and std over the seeds, and what the paper reports; shares in per cent.

        Args:
            columns: numbers of a run, by default the one that the study is judged by.
            what: ``"final"``, searched alike, or ``"published"``, the released code's settings.
        """
        self._check_complete()
        paper = reported(self.study.experiment, self.study.options)
        rows = {}
        for model in self.study.models if what == "final" else self.study.published:
            row: dict[tuple[str, ...], float] = {}
            for column in columns or (self.study.column,):
                values = np.array([self._number(record, column) for record in self.runs[model, what]])
                row |= {(column, "mean"): float(values.mean()), (column, "std"): float(values.std(ddof=1))}
                cell = paper.get(model, {}).get(column)
                if paper:
                    row[column, "paper"] = float("nan") if cell is None or cell.mean is None else cell.mean
            rows[model] = row
        table = pd.DataFrame.from_dict(rows, orient="index")
        table.columns = pd.MultiIndex.from_tuples(table.columns)
        return table.rename_axis("model")

    def contrasts(self, model: str = "advdifformer-s", column: str = "") -> list[Contrast]:
        """``model`` against every other one: differences with intervals from the study's common variance."""
        self._check_complete()
        groups = {
            name: [goodness(self.study, record, column or self.study.column) for record in self.runs[name, "final"]]
            for name in self.study.models
        }
        return pooled(groups, model, paired=self.study.paired)

    def costs(self) -> pd.DataFrame:
        """Model → parameters, CPU-seconds of an epoch, peak memory and the epoch chosen, medians over the seeds."""
        self._check_complete()
        rows = {}
        for model in self.study.models:
            outcomes = [record.outcome for record in self.runs[model, "final"]]
            rows[model] = {
                "parameters": outcomes[0].parameters,
                "CPU s / epoch": np.median([(each.cpu_seconds or 0.0) / each.epochs for each in outcomes]),
                "peak GB": np.median([each.peak_memory_gb or 0.0 for each in outcomes]),
                "chosen epoch": int(np.median([each.chosen_epoch or 0 for each in outcomes])),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")

    def chosen(self) -> pd.DataFrame:
        """Model → what the search chose, for the axes that it varied."""
        self._check_complete()
        rows = {}
        for model in self.study.models:
            plan = self.runs[model, "final"][0].plan
            axes = self.study.space(self.protocol.axes, model)
            rows[model] = {axis: plan.all_settings[axis] for axis in axes if axis in plan.all_settings}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")

    def by_budget(self, model: str) -> pd.Series:
        """Number n of candidates → validation metric of the best of n, in the mean over all choices of n.

        From the first rung, on which all candidates train equally long. With v₁ ≤ … ≤ v_m the best of n is v_i with
        probability (C(m−i, n−1) / C(m, n)); larger is better where the metric says so.
        """
        first = next(stages(self.protocol, self.study, model, self.done))
        if first.missing(self.done):
            raise ValueError(f"the search for {model} on {self.study.name} is not finished.")
        sign = -1.0 if self.metric in metrics.HIGHER_IS_BETTER else 1.0
        found = [self.done[plan.key].outcome.valid_metric for plan in first.plans]
        values = np.sort([np.inf if value is None else sign * value for value in found])
        m = len(values)
        means = []
        for n in range(1, m + 1):
            weight = np.array([_share(m, n, i) for i in range(m)])
            means.append(sign * float((weight * np.where(weight > 0, values, 0.0)).sum()))
        return pd.Series(means, index=pd.RangeIndex(1, m + 1, name="candidates"), name=model)

    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts on the paper's statements about this study, by the protocol's one rule."""
        curves = {each.name for each in self.protocol.curves if each.study == self.study.name}
        judged = verdicts(self.protocol, self.done)
        return {
            name: each
            for name, each in judged.items()
            if each.statement.study == self.study.name or each.statement.curve in curves
        }

    def _number(self, record: Record, column: str) -> float:
        value = value_of(record, column)
        if value is None:
            return float("nan")
        return 100.0 * value if record.outcome.metric in metrics.PERCENT else value

    def _check_complete(self) -> None:
        if not self.complete:
            raise ValueError(
                f"the runs of {self.study.name} are not complete; `make trial` goes on with them, and "
                "`advdiff trial status` says how far they are."
            )


def _share(m: int, n: int, i: int) -> float:
    """The probability that the best of n, drawn without replacement from m, is the one at place i (from 0)."""
    share = n / m  # P(i is drawn) · P(none of the i better ones is, given that)
    for better in range(i):
        share *= max(m - n - better, 0) / (m - 1 - better)
    return share


def findings(study: str, root: str | Path = ".") -> Findings:
    """The findings of a study.

    Args:
        study: its name in the protocol.
        root: of the repository, where ``results/`` lies.

    Example:
        >>> from advdiff.results import findings
        >>> findings("twitch").study.models[:2]
        ('mlp', 'gcn')
    """
    protocol = read_protocol(Path(root) / PATH)
    return Findings(protocol, protocol.study(study), read_trial(protocol, Path(root) / FOLDER))
