"""Specs are compared key by key, and what is unusual in them is marked."""

from __future__ import annotations

from typing import Any

from pipeline.report.comparison import differences


def told(*contents: dict[str, Any]) -> dict[str, list[list[tuple[Any, bool]]]]:
    return {
        each.path: [[(part.value, part.odd) for part in cell] for cell in each.cells] for each in differences(contents)
    }


def test_only_keys_that_differ_are_told_in_the_order_of_the_files() -> None:
    one = {"data": "a", "space": {"temperature": 0.1, "metric": "cosine"}, "training": {"seed": 0}}
    two = {"data": "a", "space": {"temperature": 0.2, "metric": "cosine"}, "training": {"seed": 1}}
    assert list(told(one, two)) == ["space.temperature", "training.seed"]
    assert differences([one, one]) == []
    assert differences([one]) == []


def test_what_most_specs_have_is_not_marked() -> None:
    found = told({"t": 0.1}, {"t": 0.2}, {"t": 0.1})
    assert found == {"t": [[(0.1, False)], [(0.2, True)], [(0.1, False)]]}
    assert told({"t": 1}, {"t": 2}) == {"t": [[(1, True)], [(2, True)]]}


def test_a_list_is_one_value_whose_uncommon_elements_are_marked() -> None:
    shift, turn = {"kind": "shift", "pixels": 2}, {"kind": "rotation", "degrees": 15}
    found = told({"space": {"invariances": [shift, turn]}}, {"space": {"invariances": [shift]}})
    assert found == {"space.invariances": [[(shift, False), (turn, True)], [(shift, False)]]}


def test_a_key_that_is_not_there_has_no_value_and_another_form_is_another_key() -> None:
    found = told({"target": "same"}, {"target": {"kind": "momentum", "m": 0.9}})
    assert found == {
        "target": [[("same", True)], []],
        "target.kind": [[], [("momentum", True)]],
        "target.m": [[], [(0.9, True)]],
    }


def test_equal_numbers_are_equal_and_true_is_no_number() -> None:
    assert differences([{"a": 15, "b": [1], "c": {}}, {"a": 15.0, "b": [1.0], "c": {}}]) == []
    assert list(told({"a": True}, {"a": 1})) == ["a"]
    assert list(told({"a": None}, {"a": 0})) == ["a"]


def test_files_of_any_form_are_compared_without_an_error() -> None:
    assert list(told({}, {"a": {3: [{"b": None}]}}, {"a": 10**400})) == ["a.3", "a"]
