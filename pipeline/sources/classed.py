"""What folders and archives have in common: one place a split, or one for all, and the first folder as the class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.sources.names import leaves
from pipeline.sources.patterns import columns_of, labels_in, pattern_faults
from pipeline.sources.record import ColumnKind, Record, Refused, Split
from pipeline.spec import Rule, Spec


class Classed(Spec):
    """Abstract: pictures whose class, if they have one, is the first folder of their path."""

    kind: str
    train: str | None = Field(min_length=1)
    """a folder's or an archive's name under the raw path; null: the raw path is itself that"""
    test: str | None = Field(min_length=1)
    """likewise; null: a share of train is kept for testing (``split``)"""
    classes: Literal["folder"] | None
    """folder: column ``label`` is the first folder of a picture's path; null: unlabelled"""
    names: str | None = Field(default=None, min_length=1)
    """label columns of classes in the names of the files, as "{digit}_{speaker}_{}"; null: none"""
    embedded: ClassVar[bool] = False
    place: ClassVar[str]
    """what train and test name: file or folder"""

    @property
    def splits_itself(self) -> bool:
        """Whether the source says what is for testing."""
        return self.test is not None

    def rules(self) -> Iterator[Rule]:
        if self.train is None and self.test is not None:
            yield "train", f"must name a {self.place} under the raw path, since test does"
        if self.train is not None and self.train == self.test:
            yield "test", f"must be another {self.place} than train; null keeps a share of train for testing"
        for field, name in (("train", self.train), ("test", self.test)):
            if name is not None and leaves(name):
                yield field, "must lie under the raw path: neither absolute nor with '..'"
        for remedy in [] if self.names is None else pattern_faults(self.names):
            yield "names", remedy
        if self.names is not None and self.classes == "folder" and "label" in columns_of(self.names):
            yield "names", "{label} is the column of the folders already; rename it, or set classes: null"

    def columns(self) -> dict[str, ColumnKind]:
        """Name and kind of every label column."""
        folder = ["label"] if self.classes == "folder" else []
        return dict.fromkeys([*folder, *(columns_of(self.names) if self.names else [])], "class")

    def count(self) -> int | None:
        """How many pictures there are: not known before they are read."""
        return None

    def parts(self) -> Iterator[tuple[str | None, Split | None]]:
        """Yield (name, split) of each place."""
        yield self.train, None if self.test is None else "train"
        if self.test is not None:
            yield self.test, "test"

    def labelled(self, name: str, content: bytes | Path, folder: str | None, split: Split | None) -> Record | Refused:
        """A sample with its labels; refused where its name does not fit, or no folder tells its class."""
        labels = {} if self.names is None else labels_in(self.names, name)
        if labels is None:
            return Refused(name, "name without its labels", f"does not fit source.names: {self.names}")
        if self.classes is None:
            return Record(name, content, labels, split)
        if folder is None:
            return Refused(name, "no class folder", "it must lie in a folder named as its class")
        return Record(name, content, {"label": folder, **labels}, split)
