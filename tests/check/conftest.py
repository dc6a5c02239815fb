"""Fewer random filters: what is known of small drawn data is found with few, and many tests fit many probes."""

from __future__ import annotations

import pytest

from pipeline.check import features


@pytest.fixture(autouse=True)
def few_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "FILTERS", 16)
