"""The scripts that the Doctor's page can open: broken ones to try it on, and the guides' own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """A script of ours.

    Attributes:
        name: of its file, and in a link.
        title: what somebody wanted.
        code: the fault it has; "" for a clean one.
        silent: JAX raises nothing.
    """

    name: str
    title: str
    code: str = ""
    silent: bool = False

    @property
    def text(self) -> str:
        """The script."""
        return _text(self.name)


@cache
def _text(name: str) -> str:
    return (_FOLDER / f"{name}.py").read_text(encoding="utf-8")


#: Broken, one kind of mistake each; the silent ones first, for they cost an afternoon.
BROKEN = (
    Example("one_array_for_the_pair", "An LSTM in a scan that counts its steps", "L301", silent=True),
    Example("same_noise_every_step", "A random walk that walks straight", "R401", silent=True),
    Example("log_that_stays_empty", "A savings book with one entry", "P204", silent=True),
    Example("past_the_end", "A melody that ends in NaN", "P206", silent=True),
    Example("padding_moves_the_carry", "Sentences of different lengths", "L311", silent=True),
    Example("where_and_the_gradient", "An entropy without a gradient", "N502", silent=True),
    Example("if_on_the_carry", "A thermostat with an if", "P201"),
    Example("rain_in_whole_litres", "A rain barrel that starts as an integer", "S104"),
    Example("walk_from_one_zero", "A walk in the plane from a single zero", "S103"),
    Example("a_list_of_rows", "Two days in a list", "S110"),
)
#: From the JAX and Flax guides, as they are.
GUIDES = (
    Example("guide_scan", "JAX guide: lax.scan"),
    Example("guide_lstm", "Flax guide: nnx.LSTMCell"),
)
EXAMPLES = {example.name: example for example in (*BROKEN, *GUIDES)}


def example_of(text: str) -> Example | None:
    """The example that a text is, unchanged."""
    return next((example for example in EXAMPLES.values() if example.text == text), None)
