"""The samples most similar to one: ``python -m stages.search --bundle PATH --vectors FILE --query SAMPLE``.

FILE is what ``python -m stages.embed --bundle`` wrote. Exact; with --index FOLDER by a FAISS index, which is written
there first where it is not (its recall against exact search is printed). --picture FILE.png shows what was found. No
stage of the pipeline reads any of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pipeline.bundle import Bundle, load
from pipeline.bundle.input import items
from pipeline.bundle.reading import Raw, on_canvas
from pipeline.bundle.stored import described_vectors, read_vectors
from pipeline.bundle.vectors import Vectors
from pipeline.contact_sheet import Entry, contact_sheet
from pipeline.folders import replaced
from pipeline.images import Pixels
from pipeline.sources import Record
from pipeline.sources.names import one_line
from pipeline.spec import Refusal
from stages import run


def main(arguments: list[str]) -> None:
    """Print, and draw, what is nearest."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.search", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", required=True, help="the bundle that made the vectors")
    parser.add_argument("--vectors", required=True, type=Path, help="what stages.embed --bundle wrote")
    parser.add_argument("--query", required=True, type=Path, help="a sample's file, or a name in the vectors")
    parser.add_argument("-k", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--index", type=Path, help="a folder of a FAISS index; written where it is not there")
    parser.add_argument("--picture", type=Path, help="FILE.png: what was found, drawn; its folders are made")
    given = parser.parse_args(arguments)
    if given.picture is not None:
        _drawable(given.picture)
    bundle, gallery = load(given.bundle), read_vectors(given.vectors)
    source = Path(described_vectors(given.vectors)["input"]).expanduser()
    own = [row for row, name in enumerate(gallery.names or ()) if _same(source, name, given.query)]
    if not given.query.exists() and not own:
        remedy = f"give the path of a {bundle.input.word}, or a name as it stands in them"
        raise Refusal(f"--query {given.query}: no such file, and no name in {given.vectors}; {remedy}")
    query = bundle.embed([given.query]) if given.query.exists() else gallery[own[0]]
    k = given.k + len(own)  # the query itself is none of the answers
    if given.k < 1 or k > len(gallery):
        others = len(gallery) - len(own)
        if not others:
            raise Refusal(f"{given.vectors}: holds the query alone, so there is nothing to find; embed more beside it")
        raise Refusal(f"search: -k {given.k} of {others} other vectors in {given.vectors}; between 1 and {others}")
    rows, similar = _found(bundle, gallery, query, k, given.index)
    answers = [(row, value) for row, value in zip(rows, similar, strict=True) if row not in own][: given.k]
    names = gallery.names or tuple(str(row) for row in range(len(gallery)))
    for row, value in answers:
        print(one_line(f"{value:.4f}  {names[row]}"))
    if given.picture is not None:
        _draw(bundle, given.query, [(names[row], value) for row, value in answers], source, given.picture)
        print(one_line(f"search: {given.picture}"))


def _found(
    bundle: Bundle, gallery: Vectors, query: Vectors, k: int, index: Path | None
) -> tuple[list[int], list[float]]:
    """Rows of the gallery and their similarities, the most similar first."""
    if index is None:
        rows, similar = bundle.neighbors(query, gallery, k)
    else:
        from pipeline.bundle.search import search_index, write_index

        if not index.exists():
            index.parent.mkdir(parents=True, exist_ok=True)
            with replaced(index) as folder:
                about = write_index(bundle, gallery, folder)
            recall = about["recall"]
            told = f"recall {recall['value']:.4f} of the {recall['k']} nearest against exact search"
            print(f"search: wrote {index}: {about['count']} vectors, {about['metric']}; {told}")
        found = search_index(bundle, index, query, gallery, k)
        rows, similar = found.rows, found.similar
    return rows[0].tolist(), similar[0].tolist()


def _drawable(picture: Path) -> None:
    """Refuse a place where no PNG can be written, before anything runs."""
    if picture.suffix.lower() != ".png":
        raise Refusal(f"--picture {picture}: must end in .png")
    if picture.is_dir():
        raise Refusal(f"--picture {picture}: is a folder; name a file in it, as {picture / 'near.png'}")
    above = next(folder for folder in picture.absolute().parents if folder.exists())
    if not above.is_dir():
        raise Refusal(f"--picture {picture}: {above} is a file, so nothing can be written below it; name another place")


def _same(source: Path, name: str, query: Path) -> bool:
    """Whether the query is the sample that a row of the vectors was made of."""
    if not query.exists():
        return name == str(query)
    try:
        return (source if source.is_file() and source.name == name else source / name).samefile(query)
    except OSError:
        return False


def _draw(bundle: Bundle, query: Path, answers: list[tuple[str, float]], source: Path, picture: Path) -> None:
    """A contact sheet: the query, then what was found. Raises Refusal where the samples have gone."""
    wanted = {name for name, _ in answers} | (set() if query.exists() else {str(query)})
    pictures: dict[str, Pixels] = {}
    for item in items(source):
        if isinstance(item, Record) and item.name in wanted:
            pictures[item.name] = _seen(bundle, item.content)
            if len(pictures) == len(wanted):
                break
    gone = sorted(wanted - pictures.keys())
    if gone:
        raise Refusal(f"{source}: {gone[0]} is no longer there, so it cannot be shown; leave --picture out")
    asked = _seen(bundle, query) if query.exists() else pictures[str(query)]
    entries = [Entry([asked], ["the query", query.name])]
    entries += [Entry([pictures[name]], [name, f"{bundle.metric} {value:.4f}"]) for name, value in answers]
    picture.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet(f"The {len(answers)} most similar to {query.name}, by {bundle.card.get('name')}", entries, picture)


def _seen(bundle: Bundle, raw: Raw) -> Pixels:
    """What an input looks like as the encoder reads it."""
    return bundle.input.picture(on_canvas(raw, bundle.input))


if __name__ == "__main__":
    run(main)
