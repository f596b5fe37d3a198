"""The Scan page: one step over a sequence, run, drawn and checked."""

import streamlit as st

from core.base.text import fill
from core.doctor.parting_job import of_scan
from core.inputs.scan_fields import PAGE
from core.plots.scan_view import player_data, summary
from pages.widgets.baseline_panel import baseline_panel
from pages.widgets.break_row import break_row
from pages.widgets.cards import link_refusals, undo_line, violation_cards
from pages.widgets.controls import Controls
from pages.widgets.export_menu import strip_menus
from pages.widgets.frame import calm, section
from pages.widgets.loop_panel import loop_panel, loop_words
from pages.widgets.pace import paced_verdict, waiting_line
from pages.widgets.page_exports import scan_offers
from pages.widgets.parting_panel import parting_panel
from pages.widgets.player import scan_player
from pages.widgets.scan_panels import init_panel, scan_panel, sequence_panel, step_panel
from pages.widgets.scan_state import Shown, marks_of, needs_run, scan_state, shown, verdict_of
from pages.widgets.state import PageState
from pages.widgets.tables import leaf_table, result_table
from pages.widgets.trajectory_panel import CHART, trajectory_panel
from pages.widgets.verdict import State, Verdict, verdict_slots, verdict_strip

TRAJECTORY = "Carry over time"
INIT_HINT, INIT_HINT_REVERSE = "t = 0 is init", "0 steps done is init"
LOOP = "Against a Python loop, no jit"
LEAVES = "Every leaf"
RESULT = "Final carry and ys"
PARTING, PARTING_HINT = "Where paths part", "eager, loop, jit and more"
STALE = "stale: of the inputs before"


def draw_cards(now: Shown, state: PageState) -> None:
    """All violations of the inputs as they stand."""
    violation_cards(now.checked.report, state, fix_all=now.checked.fix_all, undo=False)


def draw_run(now: Shown) -> None:
    """The player and the trajectory of what is shown."""
    good = now.good
    with st.container(key="scan_flow_stale" if now.stale else "scan_flow"):
        scan_player(player_data(good, chart=CHART), key="scan_player")
    if good.result is not None:
        section(fill(TRAJECTORY), hint=fill(INIT_HINT_REVERSE if good.result.reverse else INIT_HINT))
        with st.container(key="scan_plot_stale" if now.stale else "scan_plot", gap="xsmall"):
            trajectory_panel(good.result, good.step.leaves)


def draw_tables(now: Shown) -> None:
    """The comparison with the loop, every leaf, and the values written out."""
    good, old = now.good, fill(STALE) if now.stale else ""
    left, right = st.columns([0.48, 0.52], gap="medium")
    if good.result is not None:
        with left.container(gap="xsmall"):
            section(fill(LOOP), hint=old)
            with st.container(border=True, key="scan_loop_stale" if now.stale else "scan_loop"):
                loop_panel(good)
    with (right if good.result is not None else st).container(gap="xsmall"):
        section(fill(LEAVES), hint=old)
        with st.container(border=True, key="scan_leaves_stale" if now.stale else "scan_leaves"):
            leaf_table(good)
    if good.result is not None:
        section(fill(RESULT), hint=old, ask="scan_result")
        with st.container(border=True, key="scan_result_stale" if now.stale else "scan_result"):
            result_table(good)
        section(fill(PARTING), hint=fill(PARTING_HINT))
        parting_panel("scan", dict(good.values), lambda: of_scan(good.values))


def page() -> None:
    """The whole page, in one pass: what is drawn was settled before the first widget."""
    state = scan_state()
    state.begin()
    strip, menus = verdict_slots()
    if needs_run(state):
        verdict_strip(strip, Verdict(State.RUNNING))
    now = shown(state)
    result = now.checked.result
    words = summary(result, now.checked.step.leaves) if result else ""
    verdict_strip(strip, paced_verdict(verdict_of(now, words, loop_words(now.checked))))
    link_refusals(state)
    controls = Controls(state, marks_of(now.checked))
    left, right = st.columns([0.32, 0.68], gap="medium")
    output = right.container(key="scan_output", gap="xsmall")
    # What one looks at is sent first; all else has its place in the page already, and is filled in after it.
    with output, calm("scan result"):
        above = st.container(key="scan_above", gap="xsmall")
        if now.good.built.call is not None:
            draw_run(now)
    strip_menus(menus, PAGE, scan_offers(now.checked))
    with left.container(key="scan_inputs", gap="xsmall"), calm("scan inputs"):
        step_panel(controls, now.checked)
        sequence_panel(controls, now.checked)
        init_panel(controls, now.checked)
        scan_panel(controls, now.checked)
    # What is broken stands first; mere notes stand after the plot that they are about.
    first = now.checked.report is None or bool(now.checked.report.broken) or result is None
    with above, calm("scan above"):
        break_row(state)
        undo_line(state)
        waiting_line()
        if first:
            draw_cards(now, state)
    with output, calm("scan result"):
        if not first:
            draw_cards(now, state)
        if now.good.built.call is not None:
            draw_tables(now)
        baseline_panel(PAGE, dict(state.values), ready=result is not None)
    if result is not None:
        verdict_strip(strip, verdict_of(now, words, loop_words(now.checked)))


with calm("scan page"):
    page()
