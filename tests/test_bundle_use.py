"""A bundle in other hands: scikit-learn, FAISS, a hub's folder upload, another bundle beside it, the ten nearest."""

from __future__ import annotations

import json
import pickle
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled import bundled, card, saved
from PIL import Image
from small import pictures
from test_stages import Call, call, place  # noqa: F401

from pipeline.bundle import load
from pipeline.bundle.stored import read_vectors
from pipeline.bundle.transformer import BundleTransformer
from pipeline.bundle.vectors import Vectors
from pipeline.bundle.writing import write_bundle
from pipeline.spec import Refusal

IMAGES = pictures([(16, 12)] * 40, 3, seed=2)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def test_it_is_a_transformer_in_a_pipeline(tmp_path: Path) -> None:
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    folder, _ = bundled(tmp_path / "b")
    dark = [image // (1 + 3 * (number % 2)) for number, image in enumerate(IMAGES)]
    labels = np.arange(len(dark)) % 2
    paths = [str(path) for path in saved(tmp_path / "p", dark)]
    model = make_pipeline(BundleTransformer(str(folder)), LogisticRegression())
    assert cross_val_score(model, paths, labels, cv=4).mean() > 0.9
    model.fit(paths, labels)
    again = clone(model).set_params(bundletransformer__layer="z").fit(paths, labels)
    assert again[:-1].transform(paths).shape == (40, 8)
    assert list(model[:-1].get_feature_names_out()) == [f"h{number}" for number in range(16)]
    np.testing.assert_array_equal(model[:-1].transform(paths), load(folder).embed(paths))


def test_a_transformer_travels_without_its_weights_and_opens_the_same_bundle_again(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    folder, _ = bundled(tmp_path / "b")
    transformer = BundleTransformer(str(folder))
    with pytest.raises(NotFittedError):
        transformer.transform(IMAGES[:2])
    expected = transformer.fit(IMAGES).transform(IMAGES[:2])
    packed = pickle.dumps(transformer)
    assert len(packed) < 2000
    np.testing.assert_array_equal(pickle.loads(packed).transform(IMAGES[:2]), expected)
    shutil.rmtree(folder)
    bundled(folder, card(seed=9))
    with pytest.raises(Refusal, match="another bundle than the one that was fitted; fit again"):
        pickle.loads(packed).transform(IMAGES[:2])


# -- search ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def embedded(call: Call) -> Call:  # noqa: F811
    """In an empty project: a bundle ``b``, forty pictures, and their vectors ``v.npy``."""
    bundled(Path("b"))
    saved(Path("pictures"), IMAGES)
    assert call("embed", "--bundle", "b", "--input", "pictures", "--output", "v.npy")[0] == 0
    return call


def search(call: Call, *more: str, query: str = "pictures/003.png") -> tuple[int, list[str]]:  # noqa: F811
    return call("search", "--bundle", "b", "--vectors", "v.npy", "--query", query, *more)


def test_the_ten_most_similar_pictures_are_told_and_drawn(embedded: Call) -> None:
    code, lines = search(embedded, "--picture", "out/near.png")
    assert code == 0, lines
    bundle, vectors = load("b"), read_vectors("v.npy")
    similar = bundle.similarity(vectors[3], vectors)[0]
    near = [row for row in np.argsort(-similar, kind="stable") if row != 3][:10]
    assert lines == [*(f"{similar[row]:.4f}  {row:03d}.png" for row in near), "search: out/near.png"]
    with Image.open("out/near.png") as picture:
        assert picture.size[0] > 600
    Image.fromarray(IMAGES[3]).save("same.png")
    first = search(embedded, "-k", "1", query="same.png")[1]
    assert first == ["1.0000  003.png"], "another file of the same picture is an answer"


def test_a_picture_that_lies_in_an_archive_is_asked_for_by_its_name(embedded: Call) -> None:
    with tarfile.open("all.tar", "w") as tar:
        tar.add("pictures", "in")
    assert embedded("embed", "--bundle", "b", "--input", "all.tar", "--output", "t.npy")[0] == 0
    options = ("--bundle", "b", "--vectors", "t.npy", "--query", "in/003.png", "--picture", "near.png")
    code, lines = embedded("search", *options)
    assert code == 0, lines
    assert [line.replace("in/", "") for line in lines[:-1]] == search(embedded)[1]
    code, lines = embedded("search", *options[:-3], "in/077.png")
    told = "no such file, and no name in t.npy; give the path of a picture, or a name as it stands in them"
    assert (code, lines) == (1, [f"--query in/077.png: {told}"])
    Path("all.tar").unlink()
    code, lines = embedded("search", *options)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith("all.tar: no such file or folder; known: ")


def test_an_index_has_the_metric_of_the_card_and_tells_its_recall(embedded: Call) -> None:
    pytest.importorskip("faiss")
    exact = search(embedded)[1]
    code, lines = search(embedded, "--index", "index")
    assert code == 0, lines
    assert lines[0] == ("search: wrote index: 40 vectors, cosine; recall 1.0000 of the 10 nearest against exact search")
    assert lines[1:] == exact
    assert search(embedded, "--index", "index")[1] == exact, "the second time it is only read"
    about = json.loads(Path("index/index.json").read_text())
    assert (about["metric"], about["normalization"], about["identity"]) == ("cosine", "l2", load("b").identity)


@pytest.mark.parametrize("metric", ["dot", "euclidean", "squared_euclidean"])
def test_an_index_of_every_metric_agrees_with_exact_search(tmp_path: Path, metric: str) -> None:
    pytest.importorskip("faiss")
    from pipeline.bundle.search import search_index, write_index

    triplet = {"objective": {"kind": "triplet", "margin": 0.2}, "temperature": None}
    bundle = load(
        bundled(
            tmp_path / "b", card(metric=metric, normalization="none", **(triplet if metric == "euclidean" else {}))
        )[0]
    )
    vectors = bundle.embed(IMAGES)
    (tmp_path / "index").mkdir()
    assert write_index(bundle, vectors, tmp_path / "index")["recall"]["value"] == 1
    found = search_index(bundle, tmp_path / "index", vectors[:4], vectors, 5)
    rows, similar = bundle.neighbors(vectors[:4], vectors, 5)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.similar, similar, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("-k", "40"), "search: -k 40 of 39 other vectors in v.npy; between 1 and 39"),
        (("-k", "0"), "search: -k 0 of 39 other vectors in v.npy"),
        (("--index", "b"), "b: no index ("),
        (("--vectors", "w.npy"), "w.npy: no such file; did you mean 'v.npy'?"),
        (
            ("--vectors", "none/w.npy"),
            "none/w.npy: no such file; give the file that python -m stages.embed --bundle wrote",
        ),
        (("--query", "pictures"), "pictures: is a directory"),
        (("--picture", "near.txt"), "--picture near.txt: must end in .png"),
        (("--picture", "near"), "--picture near: must end in .png"),
        (("--picture", "pictures"), "--picture pictures: must end in .png"),
        (("--picture", "folder.png"), "--picture folder.png: is a folder; name a file in it, as folder.png/near.png"),
        (("--picture", "v.npy/below/near.png"), "--picture v.npy/below/near.png: "),
        (("--bundle", "other"), "vectors of another space ("),
    ],
)
def test_a_search_that_cannot_be_is_one_line(embedded: Call, arguments: tuple[str, ...], line: str) -> None:
    bundled(Path("other"), card(seed=4))
    Path("folder.png").mkdir()
    code, lines = search(embedded, *arguments)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(line)


def test_an_index_of_another_space_or_a_damaged_one_is_refused(embedded: Call) -> None:
    pytest.importorskip("faiss")
    from pipeline.bundle.search import search_index

    assert search(embedded, "--index", "index")[0] == 0
    other = load(bundled(Path("other"), card(seed=4))[0])
    with pytest.raises(Refusal, match="index: an index of another space"):
        search_index(other, Path("index"), other.embed(IMAGES[:1]), other.embed(IMAGES), 3)
    with Path("index/index.faiss").open("ab") as file:
        file.write(b"x")
    code, lines = search(embedded, "--index", "index")
    assert (code, lines) == (1, ["index/index.faiss: not the file that index.json describes; write the index again"])


def test_an_index_of_other_vectors_gives_no_names_of_these(embedded: Call) -> None:
    pytest.importorskip("faiss")
    assert search(embedded, "--index", "index")[0] == 0
    saved(Path("others"), IMAGES[::-1])
    assert embedded("embed", "--bundle", "b", "--input", "others", "--output", "w.npy")[0] == 0
    options = ("--bundle", "b", "--vectors", "w.npy", "--query", "others/003.png", "--index", "index")
    code, lines = embedded("search", *options)
    told = "index: an index of other vectors; name a new folder, or the vectors that it was written of"
    assert (code, lines) == (1, [told])


def test_an_index_that_reaches_too_few_says_so(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    from pipeline.bundle.search import search_index, write_index

    bundle = load(bundled(tmp_path / "b")[0])
    signs = np.repeat([[1.0], [-1.0]], 250, axis=0)  # two heaps of equal vectors: the graph joins no more than one
    vectors = Vectors((signs * np.full(8, 8**-0.5)).astype(np.float32), bundle.identity, "z")
    write_index(bundle, vectors, tmp_path)
    assert search_index(bundle, tmp_path, vectors[:3], vectors, 10).rows.max() < 250
    with pytest.raises(Refusal, match=r"reaches fewer than the 300 nearest; ask for fewer, or leave --index out"):
        search_index(bundle, tmp_path, vectors[:3], vectors, 300)


# -- two bundles -------------------------------------------------------------------------------------------------------


def test_two_bundles_are_compared_on_given_pictures(embedded: Call) -> None:
    bundled(Path("c"), card(seed=1, temperature=0.5))
    code, lines = embedded("compare", "b", "c", "--images", "pictures")
    assert code == 0, lines
    assert lines[0] == (
        "different spaces: other space, network, weights and projection (equal input); their vectors must not be mixed"
    )
    assert "-  seed: 0" in lines
    assert "+  seed: 1" in lines
    rows = json.loads(Path("work/compare/b--c/agreement.json").read_text())["rows"]
    assert [(row["first"], row["second"]) for row in rows] == [
        ("b.h", "c.h"),
        ("b.z", "c.z"),
        ("b.h", "c.h, rows shuffled"),
    ]
    assert 0 < rows[0]["cka"]["value"] < 1


def test_a_bundle_is_the_same_space_as_its_copy(embedded: Call) -> None:
    shutil.copytree("b", "copy")
    code, lines = embedded("compare", "b", "copy", "--samples", "pictures")
    assert code == 0, lines
    assert lines[:2] == ["the same space: equal space, network, input, weights and projection", "the cards are equal"]
    row = json.loads(Path("work/compare/b--copy/agreement.json").read_text())["rows"][0]
    assert row["neighbours"]["value"] == 1
    network = load("b").network
    next(network.projection.parameters()).data.mul_(1.5)
    write_bundle(Path("copy"), network, card())
    told = "different spaces: other projection (equal space, network, input and weights); their vectors must not"
    assert embedded("compare", "b", "copy")[1][0].startswith(told)
    shutil.copytree("b", "copy", dirs_exist_ok=True)
    code, lines = embedded("compare", "b", "copy")
    assert (code, lines[-1]) == (0, "give --samples PATH to compare their vectors of the same samples")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("b", "mine"), "compare b mine: mine is no bundle; give two"),
        (("mine", "mine", "--images", "pictures"), "--samples: goes with two bundles"),
        (("b", "b", "--images", "words"), "--samples words: both can read 0 of its files; at least 4 are needed"),
    ],
)
def test_what_cannot_be_compared_is_one_line(embedded: Call, arguments: tuple[str, ...], line: str) -> None:
    Path("words").mkdir()
    Path("words/a.txt").write_text("a")
    code, lines = embedded("compare", *arguments)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(line)


# -- a hub -------------------------------------------------------------------------------------------------------------


def test_a_hub_s_folder_upload_takes_it_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything of ``HfApi.upload_folder`` but the network: what it would send is a bundle again."""
    hub = pytest.importorskip("huggingface_hub")
    folder, _ = bundled(tmp_path / "b")
    sent: dict[str, bytes] = {}

    def commit(self: Any, *_: Any, operations: Any, **__: Any) -> None:
        for operation in operations:
            with operation.as_file() as file:
                sent[operation.path_in_repo] = file.read()

    monkeypatch.setattr(hub.HfApi, "create_commit", commit)
    monkeypatch.setattr(hub.HfApi, "_validate_yaml", lambda *_, **__: None)  # asks the hub
    monkeypatch.setattr("huggingface_hub.hf_api.is_xet_available", lambda: False, raising=False)  # one commit
    hub.HfApi(token="none").upload_folder(repo_id="me/b", folder_path=folder)
    assert sent.keys() == {path.name for path in folder.iterdir()}
    (tmp_path / "down").mkdir()
    for name, content in sent.items():
        (tmp_path / "down" / name).write_bytes(content)
    np.testing.assert_array_equal(load(tmp_path / "down").embed(IMAGES), load(folder).embed(IMAGES))
