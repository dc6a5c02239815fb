"""Labels that stand in file names."""

from __future__ import annotations

import pytest

from pipeline.sources.patterns import columns_of, labels_in, pattern_faults


@pytest.mark.parametrize(
    ("pattern", "name", "labels"),
    [
        ("{digit}_{speaker}_{}", "7/7_jackson_12.wav", {"digit": "7", "speaker": "jackson"}),
        ("{}_{speaker}_{}", "7_jackson_12.wav", {"speaker": "jackson"}),
        ("{room}/{}-{take}", "a/kitchen/x-3.flac", {"room": "kitchen", "take": "3"}),
        ("s{subject}.{}", "s12.night.wav", {"subject": "12"}),
        ("{digit}_{speaker}_{}", "noise.wav", None),
        ("{digit}_{speaker}", "a/b_c/d.wav", None),
    ],
)
def test_a_pattern_reads_the_end_of_a_path(pattern: str, name: str, labels: dict[str, str] | None) -> None:
    assert labels_in(pattern, name) == labels
    assert not list(pattern_faults(pattern))
    assert labels is None or columns_of(pattern) == list(labels)


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("plain", "names no column"),
        ("{a}{b}", "two fields without a letter between them"),
        ("{a}_{a}", "{a} stands in it twice"),
        ("{a b}", "is no name for a column"),
        ("{a}_{", "has a brace that is not closed"),
    ],
)
def test_a_pattern_that_means_nothing_says_why(pattern: str, fault: str) -> None:
    assert any(fault in each for each in pattern_faults(pattern))
