"""What is written down when a training begins and when it has ended, for ``judge NAME --when``.

It reads the thresholds as plain content: what may be demanded is the audit's affair, and no change of it retrains.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.spec import SpecError, read_yaml

LOG = "declared.jsonl"
"""in work/logs/NAME"""


def log_beginning(logs: Path, spec: Path, training: str) -> None:
    """Append the thresholds that a spec holds now.

    Args:
        logs: work/logs/NAME.
        training: fingerprint of what is trained.
    """
    try:
        audit = read_yaml(spec).get("audit")
    except SpecError:
        audit = None
    thresholds = audit.get("thresholds") if isinstance(audit, dict) else None
    _append(logs, {"event": "began", "training": training, "thresholds": thresholds})


def log_end(logs: Path, weights: Path, training: str) -> None:
    """Append the digest of the weights that a training wrote."""
    _append(logs, {"event": "finished", "training": training, "weights": digest_of(weights)})


def digest_of(weights: Path) -> str:
    """SHA-256 of a file of weights."""
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _append(logs: Path, record: dict[str, Any]) -> None:
    dated = {"date": datetime.now(UTC).isoformat(timespec="seconds"), **record}
    with (logs / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(dated, default=str) + "\n")
