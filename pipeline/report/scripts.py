"""The page's scripts: inline, each allowed by its own digest, so that nothing else that looks like a script can run."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources

from markupsafe import Markup

FILES = ("laboratory.js", "sorting.js", "map.js")


@dataclass(frozen=True)
class Scripts:
    """What stands in the page: the elements, and the sources of ``script-src`` in its policy."""

    elements: Markup
    policy: Markup


def scripts() -> Scripts:
    """All scripts, as they are in the package."""
    texts = [(resources.files("pipeline.report") / name).read_text(encoding="utf-8") for name in FILES]
    assert not any("</script" in text or "<!--" in text for text in texts)  # they would end or hide the element
    elements = Markup("\n").join(Markup(f"<script>{text}</script>") for text in texts)
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return Scripts(elements, Markup(" ").join(Markup(f"'sha256-{digest}'") for digest in digests))
