"""What a picture of a sharded data set is called in its source: read from the shards when somebody asks."""

from __future__ import annotations

import json
import tarfile

from pipeline.shards import REMEDY, Shards
from pipeline.spec import Refusal


class Names:
    """Call it with (split, row). A shard is walked once, when the first of its names is asked for."""

    def __init__(self, shards: Shards):
        self.shards = shards
        self._known: dict[str, list[str]] = {}

    def __call__(self, split: str, row: int) -> str:
        """The name of a picture. Raises Refusal where a shard does not hold what its index says."""
        for shard in self.shards.card.shards:
            if shard.split != split:
                continue
            if row < shard.count:
                return self._of(shard.file, shard.count)[row]
            row -= shard.count
        raise IndexError(f"{split} has no picture {row}")

    def _of(self, file: str, count: int) -> list[str]:
        if file not in self._known:
            path = self.shards.folder / file
            try:
                with tarfile.open(path, "r:") as tar:
                    described = [json.loads(_read(tar, member)) for member in tar if member.name.endswith(".json")]
                names = [str(each["name"]) for each in described]
            except (tarfile.TarError, ValueError, KeyError, TypeError) as error:
                raise Refusal(f"{path}: damaged ({error}); {REMEDY}") from None
            if len(names) != count:
                raise Refusal(f"{path}: {len(names)} pictures, the index says {count}; {REMEDY}")
            self._known[file] = names
        return self._known[file]


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return b"" if file is None else file.read()
