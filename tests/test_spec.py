"""Floor 0: what a user reads when a spec is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from pipeline.spec import Rule, Spec, SpecError, canonical, digest, parse, read_section, read_spec


class Apple(Spec):
    kind: Literal["apple"]
    weight: float = Field(gt=0)


class Pear(Spec):
    kind: Literal["pear"]
    count: int

    def rules(self) -> Iterator[Rule]:
        if self.count > 3:
            yield "count", "at most 3 pears"


class Basket(Spec):
    fruit: tuple[Annotated[Apple | Pear, Field(discriminator="kind")], ...]
    best: Apple
    name: str
    price: float | None


GOOD = {"fruit": [{"kind": "apple", "weight": 1}], "best": {"kind": "apple", "weight": 2.5}, "name": "n", "price": None}


def told(content: object) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse(content, Basket, "b.yaml", "space")
    return str(caught.value).splitlines()


def test_a_right_spec_is_frozen_and_hashable() -> None:
    basket = parse(GOOD, Basket, "b.yaml")
    assert basket == parse(GOOD, Basket, "other.yaml")
    assert hash(basket) == hash(parse(GOOD, Basket, "b.yaml"))
    with pytest.raises(ValidationError):
        basket.name = "other"


def test_all_faults_of_a_file_are_told_together_one_line_each() -> None:
    content = {
        "fruit": [{"kind": "aple", "weight": 1}, {"kind": "apple", "weight": -1, "wieght": 2}, {"kind": "pear"}, 3],
        "best": {"kind": "pear", "count": 2},
        "nmae": "n",
        "price": "cheap",
    }
    assert told(content) == [
        "b.yaml: space.fruit[0].kind = \"aple\": unknown kind; did you mean 'apple'?",
        "b.yaml: space.fruit[1].weight = -1: must be greater than 0",
        "b.yaml: space.fruit[1].wieght = 2: unknown key; did you mean 'weight'?",
        "b.yaml: space.fruit[2].count: missing; write it out",
        "b.yaml: space.fruit[3] = 3: must be a mapping of keys to values",
        'b.yaml: space.best.kind = "pear": unknown kind; known: apple',
        "b.yaml: space.best.weight: missing; write it out",
        "b.yaml: space.best.count = 2: unknown key; known: kind, weight",
        "b.yaml: space.name: missing; write it out",
        'b.yaml: space.price = "cheap": must be a valid number',
        "b.yaml: space.nmae = \"n\": unknown key; did you mean 'name'?",
    ]


def test_rules_between_fields_name_the_field() -> None:
    assert told({**GOOD, "fruit": [{"kind": "pear", "count": 9}]}) == [
        "b.yaml: space.fruit[0].count = 9: at most 3 pears"
    ]


def test_a_missing_kind_names_what_there_is() -> None:
    assert told({**GOOD, "fruit": [{"weight": 9}]}) == ["b.yaml: space.fruit[0].kind: missing; known: apple, pear"]


@pytest.mark.parametrize("value", [True, "1.5", [1.5], float("nan"), float("inf")])
def test_nothing_is_coerced_into_a_number(value: object) -> None:
    (line,) = told({**GOOD, "price": value})
    assert line.startswith("b.yaml: space.price = ")


def test_yaml_is_read_by_the_rules_of_version_1_2(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text("fruit: []\nbest: {kind: apple, weight: 1e-3}\nname: on\nprice: 010\n")
    basket = read_spec(file, Basket)
    assert (basket.best.weight, basket.name, basket.price) == (0.001, "on", 10)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1, 2\n", "line 2, column 1: not valid YAML"),
        ("a: 1\na: 2\n", "not valid YAML: found duplicate key"),
        ("- 1\n", "must be a mapping of keys to values"),
        ("", "must be a mapping of keys to values"),
        ("a: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ],
)
def test_what_is_no_yaml_mapping_is_told_on_one_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "b.yaml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_spec(file, Basket)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(str(file)), line
    assert told in line


def test_a_file_that_is_not_there_offers_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "digits.yaml").write_text("")
    with pytest.raises(SpecError, match=r"digit\.yaml: no such file; did you mean 'digits'\?"):
        read_spec(tmp_path / "digit.yaml", Basket)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(SpecError, match="not valid YAML"):
        read_spec(file, Basket)


def test_a_missing_section_is_named(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text("data: x\n")
    with pytest.raises(SpecError, match=r"b\.yaml: space: missing section"):
        read_section(file, "space", Basket)


def test_equal_content_has_equal_canonical_text_and_digest() -> None:
    first, second = {"b": 1, "a": [1.5, None]}, {"a": [1.5, None], "b": 1}
    assert canonical(first) == canonical(second) == '{"a":[1.5,null],"b":1}'
    assert digest(first) == digest(second) != digest({"a": [1.5, None], "b": 2})
