"""What the rules of diagnosis ask of measures: values, the ends of their intervals, and whether one beats its control.

A figure is better than the untrained network's where its interval lies above it by SLACK; of what is read it is the
interval of the difference on the same test rows (``gain``). A measure that is missing or has no value says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.audit.achieved import GAIN, PRESERVED, readable_of

if TYPE_CHECKING:
    from pipeline.audit.judge import Measured

SLACK = 0.02
"""By which a figure must be better than the untrained network's, to count as better."""


class Evidence:
    """Measures by name."""

    def __init__(self, measured: Mapping[str, Measured]):
        self.measured = measured

    def value(self, name: str) -> float | None:
        """The value itself."""
        return self.measured[name].value if name in self.measured else None

    def low(self, name: str) -> float | None:
        """The lower end of the interval; the value where there is none."""
        value = self.value(name)
        return value if value is None or self.measured[name].low is None else self.measured[name].low

    def high(self, name: str) -> float | None:
        """The upper end of the interval; the value where there is none."""
        value = self.value(name)
        return value if value is None or self.measured[name].high is None else self.measured[name].high

    def known(self, *names: str) -> bool:
        """Whether all of them have a value."""
        return all(self.value(name) is not None for name in names)

    def labels(self) -> list[str]:
        """What is preserved, as measures of h; its gain over the untrained network is known."""
        names = sorted(name for name in self.measured if name.startswith(f"{PRESERVED}.") and name.endswith(".h"))
        return [name for name in names if self.known(name, f"{GAIN}.{readable_of(name)}")]

    def better(self, name: str) -> bool:
        """Whether a measure of h is better than the untrained network's."""
        low, high = self.low(name), self.high(name.removesuffix(".h") + ".untrained")
        return low is not None and high is not None and low > high + SLACK

    def gained(self, name: str) -> bool:
        """Whether what a skill of h reads is read better than from the untrained network, on the same test rows."""
        low = self.low(f"{GAIN}.{readable_of(name)}")
        return low is not None and low > SLACK

    def lacking(self, name: str) -> bool:
        """Whether h reads no more than the untrained network, or less than the pixels or cheap probes of them."""
        high, family = self.high(name), name.removesuffix(".h")
        rivals = [self.low(f"{family}.{control}") for control in ("raw", "cheap")]
        less = high is not None and any(rival is not None and high < rival for rival in rivals)
        return less or not self.gained(name)

    def outdone(self, name: str, other: str) -> bool:
        """Whether training has added more of another skill, and h reads no more than the pixels or cheap probes."""
        low, family = self.low(name), name.removesuffix(".h")
        rivals = [self.high(f"{family}.{control}") for control in ("raw", "cheap")]
        ahead = low is not None and all(rival is None or low > rival for rival in rivals)
        own, least = self.value(f"{GAIN}.{readable_of(name)}"), self.low(f"{GAIN}.{readable_of(other)}")
        return not ahead and own is not None and least is not None and least > own

    def against(self, name: str) -> str:
        """How well a skill of h reads, beside the untrained network, in words."""
        own, control = self.value(name), self.value(name.removesuffix(".h") + ".untrained")
        beside = "" if control is None else f" (untrained {control:.2f})"
        return f"{readable_of(name)} is read with skill {own:.2f}{beside}"


def share(value: float | None) -> str:
    """A share in per cent, in words."""
    return "no" if value is None else f"{100 * value:.0f} %"
