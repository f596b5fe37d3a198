"""The questions that people bring to a scan and a cell, each answered at the control it is about.

They are those of the two guides that this project grew from. An answer is two or three sentences: the catalogue and the
pages themselves show the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer, plain text with `code` in backticks.

    Attributes:
        key: where it stands: ``<page>_<control>``.
    """

    key: str
    question: str
    answer: str


QUESTIONS: Final = (
    Question(
        "scan_result",
        "What does scan return?",
        "A pair: the final carry, with the structure, shapes and dtypes of init, and ys, what every step gave as its "
        "second value, stacked along a new leading axis of length T. ys does not hold the initial carry.",
    ),
    Question(
        "scan_xs",
        "Over which axis does scan run?",
        "Over the leading axis of every leaf of xs, and nothing else: `xs[0]` goes into step 0. Data with the batch "
        "first must be turned round before (`jnp.swapaxes(x, 0, 1)`), or the scan walks over people instead of time.",
    ),
    Question(
        "scan_step",
        "Can a scan be differentiated?",
        "Yes, forward and backward, with respect to init, to xs and to whatever else the step reads, as long as its "
        "operations are. The Gradients page shows it. `jax.lax.while_loop` has no backward mode; a scan does.",
    ),
    Question(
        "lstm_carry",
        "What is the carry made of?",
        "An LSTM's of two arrays, the pair (c, h): the cell state c and the hidden state h, each (B, H), in this order. "
        "A GRU's and a simple cell's is h alone.",
    ),
    Question(
        "lstm_cell",
        "How wide is the output?",
        "`hidden_features` wide: the output is the new h, so it is (B, H) whatever the width F of the input.",
    ),
    Question(
        "lstm_input",
        "Why does initialize_carry want input_shape?",
        "It makes the carry for a batch: all axes of the input but the last become axes of c and h. So it must be the "
        "shape of one step's input, (B, F), not of the whole sequence.",
    ),
)


def question_at(key: str) -> Question:
    """The question that stands at this place.

    Raises:
        KeyError: none does.
    """
    for question in QUESTIONS:
        if question.key == key:
            return question
    raise KeyError(key)
