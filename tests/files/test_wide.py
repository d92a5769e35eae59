"""The work before an explanation grows with the number of columns, not with its square."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from texplainer.files import job, survey

skops = pytest.importorskip("skops.io")


def test_the_kinds_of_columns_are_asked_for_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.linear_model import LinearRegression

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 300))).rename(columns=lambda j: f"c{j}")
    skops.dump(LinearRegression().fit(frame, frame["c0"]), tmp_path / "m.skops")
    frame.to_parquet(tmp_path / "d.parquet")
    asked, kinds = [], survey.DiskTable.kinds.fget
    monkeypatch.setattr(survey.DiskTable, "kinds", property(lambda table: asked.append(1) or kinds(table)))
    job.prepare_job(str(tmp_path / "m.skops"), str(tmp_path / "d.parquet"))
    assert len(asked) < 10
