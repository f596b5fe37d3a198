"""What the first visitor would else wait for: modules, the first pages' programs, a heap out of the collector's way.

`deploy/serve.py` has it done when nobody waits: `open_warm` before the port answers, `warm_rest` beside it in a thread.
Plain `streamlit run app.py` has no such moment: there the first visitor's run does all of it, and pays.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading

import streamlit as st

import pages.widgets
from core.base.program_folder import program_folder
from core.inputs import cell_page, sequence_page
from core.inputs.scan_check import evaluate
from core.inputs.scan_fields import opening
from core.inputs.sequence_inputs import SequenceInputs
from core.runners.kept_programs import keep_programs
from core.runners.reference import loop_check
from core.runners.scan import run_call
from core.runners.warmup import opening_call, warm_up
from core.steps.library import DEFAULT

#: Somebody else sees to the rest in a thread: nobody waits for it.
_seen_to = threading.Event()


def open_warm() -> None:
    """All that the opening page needs: its modules, which are those of every page, and its programs."""
    _keep()
    _import_widgets()
    call = opening_call()
    loop_check(call, run_call(call))
    evaluate(opening(DEFAULT.id))
    _seen_to.set()


def warm_rest() -> None:
    """What the other pages open with, then the frozen heap; after `open_warm`, in a thread."""
    _all_warm()


def warmed() -> None:
    """In every run, first of all: once per process everything is warmed up here, unless that is seen to already."""
    if not _seen_to.is_set():
        _all_warm()


@st.cache_resource(show_spinner=False)
def _all_warm() -> bool:
    """Compile what the pages open with and freeze the heap (FACTS.md: reruns cost 5 to 90 x less)."""
    _keep()
    warm_up(_import_widgets, lambda: evaluate(opening(DEFAULT.id)), cell_page.warm_up, _sequence)
    return True


def _sequence() -> None:
    """The opening sequence, and its checks that come after the plot: they run the cell without jit, step by step."""
    sequence_page.check_slowly(sequence_page.look_at(SequenceInputs()))


def _import_widgets() -> None:
    """Every module that a page may use: one that comes after the heap was frozen is looked at by each collection."""
    for module in pkgutil.iter_modules(pages.widgets.__path__, f"{pages.widgets.__name__}."):
        importlib.import_module(module.name)


def _keep() -> None:
    folder = program_folder(os.environ)
    if folder is not None:
        keep_programs(folder)
