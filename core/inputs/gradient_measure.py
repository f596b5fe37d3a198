"""How a derivative through time shrinks or grows: measured on the numbers, said in words."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.text import fill

type Array = np.ndarray[Any, Any]

#: A line is put through so many values at least.
FEWEST: Final = 3

VANISHES = "vanishes: halves every {steps}"
EXPLODES = "explodes: doubles every {steps}"
HOLDS = "holds: within a factor of 2 over {steps}"
CUT_OFF = "is exactly 0 but for the last {steps}"
ALL_ZERO = "is exactly 0: nothing gets through"
TOO_FEW = "too few values to say how it changes"
NOT_FINITE = "is not a number here"
ONE_STEP, STEPS = "step", "{n} steps"
SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SUBSCRIPTS: Final = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
POWER = "{digits}·10{power}"


class Trend(enum.StrEnum):
    """What the fit says."""

    VANISHES = "vanishes"
    EXPLODES = "explodes"
    HOLDS = "holds"
    CUT = "cut"
    ZERO = "zero"
    NONE = "none"
    NOT_FINITE = "not_finite"


@dataclass(frozen=True, slots=True)
class Decay:
    """How ‖∂h_s/∂x_t‖ changes with the steps between t and s.

    Attributes:
        trend: see `Trend`; it holds when the line changes by less than a factor of 2 from end to end.
        steps: over which it halves or doubles; where it holds or is cut off, how many there are.
        misses: the factor by which values are off the line, root mean square (1.0: they lie on it).
        zeros: values that are exactly 0: they have no logarithm, so the line is without them.
        not_finite: values that are NaN or infinite.
    """

    trend: Trend
    steps: float = math.nan
    misses: float = math.nan
    zeros: int = 0
    not_finite: int = 0

    @property
    def words(self) -> str:
        """In a few words."""
        template = {
            Trend.VANISHES: VANISHES,
            Trend.EXPLODES: EXPLODES,
            Trend.HOLDS: HOLDS,
            Trend.CUT: CUT_OFF,
            Trend.ZERO: ALL_ZERO,
            Trend.NONE: TOO_FEW,
            Trend.NOT_FINITE: NOT_FINITE,
        }[self.trend]
        return fill(template, steps=counted_steps(self.steps))


def decay_of(row: Array) -> Decay:
    """The change along one row of a map: least squares of log2 of the positive values over the steps that lie between.

    Args:
        row: (s,): ``row[t]`` is ‖∂h_s/∂x_t‖ for t = 0 … s − 1.
    """
    finite = np.isfinite(row)
    zeros, wild = int((row == 0).sum()), int((~finite).sum())
    used = finite & (row > 0)
    if wild == len(row) and wild:
        return Decay(Trend.NOT_FINITE, zeros=zeros, not_finite=wild)
    if zeros + wild == len(row):
        return Decay(Trend.ZERO, zeros=zeros, not_finite=wild)
    if int(used.sum()) < FEWEST and zeros and not row[: len(row) - int(used.sum())].any():
        return Decay(Trend.CUT, float(used.sum()), zeros=zeros, not_finite=wild)
    if int(used.sum()) < FEWEST:
        return Decay(Trend.NONE, zeros=zeros, not_finite=wild)
    apart = np.arange(len(row), dtype=float)[::-1][used]
    logs = np.log2(row[used])
    slope, level = np.polyfit(apart, logs, 1)
    misses = float(2.0 ** math.sqrt(float(np.mean((logs - (slope * apart + level)) ** 2))))
    whole = abs(slope) * float(apart.max() - apart.min())
    if whole < 1.0:
        return Decay(Trend.HOLDS, float(len(row)), misses, zeros, wild)
    return Decay(Trend.EXPLODES if slope > 0 else Trend.VANISHES, float(1.0 / abs(slope)), misses, zeros, wild)


def counted_steps(steps: float) -> str:
    """``1.3 steps``, ``step``: a count as it stands after "every"."""
    text = f"{steps:.2g}" if steps < 10 else f"{steps:.0f}"
    return fill(ONE_STEP) if text == "1" else fill(STEPS, n=text)


def power_text(value: float, digits: int = 2) -> str:
    """A norm for reading: ``0.42``, ``13``, ``8.2·10⁻¹¹``; an exact zero is ``0``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if 0.01 <= abs(value) < 1000:
        text = f"{value:.{digits}g}"
        return f"{value:.0f}" if "e" in text else text
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return fill(POWER, digits=mantissa, power=str(int(exponent)).translate(SUPERSCRIPTS))


def below(number: int) -> str:
    """A number as an index below the line: ``₅₀``."""
    return str(number).translate(SUBSCRIPTS)
