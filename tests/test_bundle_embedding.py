"""``stages.embed --bundle``: every file of a folder, archive, shards or arrays is embedded or in the ledger; a run that
was stopped goes on; nothing is written over."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled import bundled, saved
from small import pictures, sharded
from test_stages import Call, call, place  # noqa: F401

from pipeline.bundle import embedding as bundle_embedding
from pipeline.bundle import input as bundle_input
from pipeline.bundle import load
from pipeline.bundle import parts as bundle_parts
from pipeline.bundle.stored import described_vectors, read_vectors
from pipeline.spec import Refusal

IMAGES = pictures([(16, 12), (30, 40), (5, 9), (1, 1), (16, 16), (33, 12)], 3)


@pytest.fixture
def inside(call: Call) -> Call:  # noqa: F811
    """In an empty project, with a bundle ``b`` and a folder ``pictures``."""
    bundled(Path("b"))
    saved(Path("pictures/some/below"), IMAGES[:4])
    saved(Path("pictures"), IMAGES[4:])
    return call


def embed(call: Call, source: str = "pictures", output: str = "v.npy", *more: str) -> tuple[int, list[str]]:  # noqa: F811
    return call("embed", "--bundle", "b", "--input", source, "--output", output, *more)


def ledger(output: str = "v.npy") -> Any:
    return json.loads(Path(f"{output}.ledger.json").read_text())


def expected(names: tuple[str, ...] | None, under: str = "pictures") -> np.ndarray:
    return np.asarray(load("b").embed([Path(under) / name for name in names or ()]))


@pytest.mark.parametrize("output", ["v.npy", "out/v.parquet"])
def test_a_folder_becomes_vectors_with_names_and_identity(inside: Call, output: str) -> None:
    code, lines = embed(inside, output=output)
    assert code == 0, lines
    assert lines[-1] == f"embed {output}: kept 6 of 6"
    vectors = read_vectors(output)
    names = ("000.png", "001.png", *(f"some/below/{number:03d}.png" for number in range(4)))
    assert (vectors.names, vectors.layer, vectors.identity) == (names, "h", load("b").identity)
    np.testing.assert_allclose(vectors, expected(names), atol=1e-6)
    about = described_vectors(output)
    assert (about["input"], about["metric"], about["count"], about["width"]) == ("pictures", "cosine", 6, 16)
    rows, _ = load("b").neighbors(vectors, vectors, k=1)
    assert len(rows) == 6
    beside = {".json"} if output.endswith(".npy") else set()
    found = {path.name.removeprefix(Path(output).name) for path in Path(output).parent.glob(f"*{Path(output).name}*")}
    assert found == {"", ".ledger.json"} | beside, "neither parts nor a lock is left"


def test_z_is_written_as_the_loss_compared_it(inside: Call) -> None:
    assert embed(inside, "pictures", "z.npy", "--layer", "z")[0] == 0
    vectors = read_vectors("z.npy")
    assert (vectors.layer, vectors.shape) == ("z", (6, 8))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_every_file_is_kept_or_named_with_its_reason(inside: Call) -> None:
    Path("pictures/words.txt").write_text("no picture")
    whole = Path("pictures/000.png").read_bytes()
    Path("pictures/cut.png").write_bytes(whole[: len(whole) // 2])
    Path("pictures/.hidden.png").write_bytes(whole)
    Path("pictures/link.png").symlink_to("000.png")
    np.save("bands.npy", np.zeros((2, 9, 9, 5), np.uint8))
    with tarfile.open("pictures/more.tar", "w") as tar:
        tar.add("pictures/000.png", "in/tar.png")
        tar.add("pictures/words.txt", "tar.json")
    Path("pictures/broken.zip").write_bytes(b"PK\x03\x04 and nothing else")
    code, lines = embed(inside)
    assert code == 0, lines
    found = ledger()
    assert found["kept"] == 7
    assert found["seen"] == found["kept"] + len(found["files"])
    reasons = {file["name"]: file["reason"] for file in found["files"]}
    broken = {name: reason for name, reason in reasons.items() if name.startswith("broken.zip")}
    assert broken
    assert reasons == broken | {
        "words.txt": "not a picture",
        "cut.png": "damaged picture",
        ".hidden.png": "hidden or system file",
        "link.png": "no regular file",
    }
    assert "more.tar/in/tar.png" in (read_vectors("v.npy").names or ())
    assert any("1 descriptions" in note for note in found["notes"])
    assert "refused: " in lines[-1]
    code, lines = embed(inside, "bands.npy", "bands_v.npy")
    assert code == 1
    assert "no picture in it that could be embedded (kept 0 of 2; 2 refused: wrong channels" in lines[-1]
    assert lines[-1].endswith("; bands_v.npy.ledger.json names all")
    assert len(json.loads(Path("bands_v.npy.ledger.json").read_text())["files"]) == 2


def test_archives_shards_and_arrays_are_read_as_they_are(inside: Call) -> None:
    with zipfile.ZipFile("p.zip", "w") as archive:
        for path in sorted(Path("pictures").rglob("*.png")):
            archive.write(path, str(path.relative_to("pictures")))
    assert embed(inside, "p.zip", "zip.npy")[0] == 0
    assert embed(inside, "pictures", "folder.npy")[0] == 0
    zipped = read_vectors("zip.npy")
    by_name = dict(zip(zipped.names or (), zipped.values, strict=True))
    folder = read_vectors("folder.npy")
    np.testing.assert_allclose([by_name[name] for name in folder.names or ()], folder, atol=1e-6)
    shards = sharded(Path("shards"))
    assert embed(inside, "shards", "shards.npy")[0] == 0
    stored = [shards.read(split, row) for split in ("test", "train") for row in range(shards.card.splits[split])]
    np.testing.assert_allclose(read_vectors("shards.npy"), load("b").embed(stored), atol=1e-5)
    assert ledger("shards.npy")["seen"] == 96
    images = np.concatenate([shards.images(split) for split in ("test", "train")]).transpose(0, 2, 3, 1)
    np.save("arrays.npy", images)
    assert embed(inside, "arrays.npy", "arrays_v.npy")[0] == 0
    np.testing.assert_allclose(read_vectors("arrays_v.npy"), load("b").embed(images), atol=1e-5)


def test_a_run_that_was_stopped_goes_on_and_makes_changed_parts_anew(
    inside: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_input, "PART", 2)
    assert embed(inside, "pictures", "once.npy")[0] == 0
    write = bundle_parts.write_part
    written: list[int] = []

    def stopping(bundle: Any, partial: Path, part: Any, *rest: Any) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(part.number)
        write(bundle, partial, part, *rest)

    monkeypatch.setattr(bundle_embedding, "write_part", stopping)
    assert embed(inside)[0] == 130
    assert not Path("v.npy").exists()
    saved(Path("pictures"), IMAGES[2:4])  # 000.png and 001.png have changed: the first part
    written.clear()
    code, lines = embed(inside)
    assert (code, written) == (0, [0, 2])
    assert lines[-2:] == ["embed v.npy: went on after 1 of 3 parts", "embed v.npy: kept 6 of 6"]
    vectors = read_vectors("v.npy")
    np.testing.assert_allclose(vectors, expected(vectors.names), atol=1e-6)
    np.testing.assert_array_equal(vectors[2:], read_vectors("once.npy")[2:])
    assert not list(Path().glob(".v.npy*"))


def test_parts_of_another_bundle_are_not_taken_over(inside: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from bundled import card

    assert embed(inside, "pictures", "one.npy")[0] == 0

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bundle_embedding, "accounted", stop)
        assert embed(inside)[0] == 130
    assert list(Path(".v.npy.partial").glob("*.npz"))
    bundled(Path("b"), card(seed=5))
    code, lines = embed(inside)
    assert (code, len(lines)) == (0, 1), lines
    vectors = read_vectors("v.npy")
    np.testing.assert_allclose(vectors, expected(vectors.names), atol=1e-6)
    assert np.abs(np.asarray(vectors) - read_vectors("one.npy")).max() > 0.01
    with pytest.raises(Refusal, match="vectors of another space"):
        load("b").similarity(vectors, read_vectors("one.npy"))


def test_several_processes_give_the_same_bytes_as_one(inside: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline import intake

    monkeypatch.setattr(intake, "CHUNK_RECORDS", 1)
    monkeypatch.setattr(intake, "INLINE", 1)
    for workers in ("1", "2"):
        monkeypatch.setenv("LATENT_WORKERS", workers)
        assert embed(inside, "pictures", f"{workers}.npy")[0] == 0
    assert Path("1.npy").read_bytes() == Path("2.npy").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--bundle", "c", "--input", "pictures", "--output", "v.npy"),
            "c: no such bundle: card.json is missing; ",
        ),
        (
            ("--bundle", "b", "--input", "picture", "--output", "v.npy"),
            "picture: no such file or folder; did you mean 'pictures'?",
        ),
        (
            ("--bundle", "b", "--input", "empty", "--output", "v.npy"),
            "--input empty: no picture in it that could be emb",
        ),
        (
            ("--bundle", "b", "--input", "junk.tar", "--output", "v.npy"),
            "junk.tar: not a tar, tar.gz or zip, or damaged from its start (",
        ),
        (("--bundle", "b", "--input", "pictures", "--output", "v.csv"), "--output v.csv: must end in .parquet or .npy"),
        (
            ("--bundle", "b", "--input", "pictures", "--output", "old.npy"),
            "--output old.npy: exists; name another file",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(inside: Call, arguments: tuple[str, ...], line: str) -> None:
    Path("empty").mkdir()
    Path("old.npy").write_bytes(b"mine")
    Path("junk.tar").write_bytes(b"junk" * 999)
    before = set(Path().rglob("*"))
    code, lines = inside("embed", *arguments)
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith(line)
    assert lines[0].count("junk.tar") < 2
    assert set(Path().rglob("*")) == before
    assert Path("old.npy").read_bytes() == b"mine"


def test_one_file_alone_is_embedded_as_in_its_folder(inside: Call) -> None:
    assert embed(inside, "pictures", "all.npy")[0] == 0
    every = read_vectors("all.npy")
    file = sorted(path for path in Path("pictures").rglob("*.png") if path.is_file())[0]
    assert embed(inside, str(file), "one.npy") == (0, ["embed one.npy: kept 1 of 1"])
    one = read_vectors("one.npy")
    assert one.names == (file.name,)
    assert every.names is not None
    row = every.names.index(str(file.relative_to("pictures")))
    np.testing.assert_allclose(one[0], every[row], atol=1e-6)
    options = ("--bundle", "b", "--vectors", "one.npy", "--query")
    told = "one.npy: holds the query alone, so there is nothing to find; embed more beside it"
    for query in (str(file), file.name):
        assert inside("search", *options, query) == (1, [told])


def test_one_file_that_is_no_sample_is_one_line_and_its_ledger(inside: Call) -> None:
    code, lines = embed(inside, "b/card.json")
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith("--input b/card.json: no picture in it that could be embedded (kept 0 of 1; 1 refused: ")
    assert ledger()["seen"] == 1
    assert not Path("v.npy").exists()


def test_a_bundle_without_a_projection_has_no_z_to_write(inside: Call) -> None:
    bundled(Path("behind"), projection=False)
    code, lines = inside("embed", "--bundle", "behind", "--input", "pictures", "--output", "v.npy", "--layer", "z")
    assert (code, lines) == (1, ["--layer z: behind has no projection; export it with export.projection: true"])


def test_vectors_that_are_not_of_a_bundle_are_told(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"v\.npy: no such file"):
        read_vectors(tmp_path / "v.npy")
    np.save(tmp_path / "v.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(Refusal, match=r"not known of which space: v\.npy\.json is not beside it"):
        read_vectors(tmp_path / "v.npy")
    (tmp_path / "v.npy.json").write_text("[]")
    with pytest.raises(Refusal, match=r"no vectors of a bundle \(its description is no mapping\)"):
        read_vectors(tmp_path / "v.npy")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pytest.importorskip("pyarrow").table({"name": ["a"]}), tmp_path / "v.parquet")
    with pytest.raises(Refusal, match="no vectors of a bundle"):
        read_vectors(tmp_path / "v.parquet")
