"""The names of measures about transformations: closed, with ranges, and taken apart again."""

import pytest

from pipeline.audit import Audit, column_of, nearest_measure, range_of
from pipeline.audit.achieved import examples, readable_of, transformation_of
from pipeline.spec import parse

KNOWN = [
    ("movement.grayscale.h", (0, float("inf")), "grayscale", None),
    ("retrieval.blur_2.z", (0, 1), "blur_2", None),
    ("transformation.right_angle.raw", (-1, 1), "right_angle", None),
    ("label_kept.noise.a.b.h", (-float("inf"), float("inf")), "noise", "a.b"),
    ("costs.shift.cell type", (-float("inf"), float("inf")), "shift", "cell type"),
    ("boundary.hue", (-2, 2), "hue", None),
    ("preserved.label.h", (-1, 1), None, None),
    ("detail.x.untrained", (-1, 1), None, "x"),
    ("matching.raw", (0, 1), None, None),
    ("spread.z", (0, 1), None, None),
    ("effective_rank.untrained", (1, float("inf")), None, None),
    ("mig.h", (0, 1), None, None),
]
UNKNOWN = [
    "movement.h",
    "movement.blur.raw",
    "boundary.blur.h",
    "detail.h",
    "matching.q",
    "label_kept.blur.h",
    "costs.x",
]


@pytest.mark.parametrize(("name", "within", "transformation", "column"), KNOWN)
def test_a_name_has_a_range_and_is_taken_apart(name, within, transformation, column):
    assert range_of(name) == within
    assert transformation_of(name) == transformation
    assert column_of(name) == column


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_named_so_is_no_measure(name):
    assert range_of(name) is None


def test_every_example_is_a_name():
    assert not [name for name in examples("blur", "label") if range_of(name) is None]


def test_what_is_read_may_be_a_factor_or_a_column():
    assert readable_of("preserved.hue.h") == "hue"
    assert readable_of("preserved.a.b.cheap") == "a.b"
    assert readable_of("probe.label.knn.h") is None


def test_the_nearest_name_is_offered():
    assert "movement.blur.h" in nearest_measure("movment.blur.h")


def test_a_section_tells_the_transformations_and_names_of_its_thresholds():
    thresholds = [
        {"measure": "movement.blur.h", "at_most": 0.5},
        {"measure": "preserved.hue.h", "at_least": 0.1},
        {"measure": "detail.x.h", "at_most": 0.1},
    ]
    content = {"samples": 9, "neighbours": 1, "purity_at": [1], "thresholds": thresholds, "accept": []}
    audit = parse(content, Audit, "x.yaml", "audit")
    assert list(audit.transformations()) == [("thresholds[0].measure", "blur")]
    assert list(audit.preserved()) == [("thresholds[1].measure", "hue")]
    assert list(audit.columns()) == [("thresholds[2].measure", "x")]
