"""Carry Lab: page config, navigation, frame; nothing else.

Started by `make run` (deploy/serve.py, warm before anybody comes) or by plain `streamlit run app.py`. Scripts live in
pages/views: a flat `pages/x.py` would be run by Streamlit itself, past this file, on the first deep link of a fresh process.
"""

import streamlit as st

from pages.widgets.classroom import class_panel, class_style, enter_class
from pages.widgets.frame import NAME, page_style, sidebar_name
from pages.widgets.lesson_progress import enter_lesson
from pages.widgets.lesson_rail import lesson_rail, rail_slot
from pages.widgets.measured import measured
from pages.widgets.state import enter_page
from pages.widgets.turn import in_turn
from pages.widgets.warm_up import warmed

#: Navigation: group -> (script, title, URL path; "" is the root).
PAGES = {
    "Play": (
        ("pages/views/scan.py", "Scan", ""),
        ("pages/views/lstm.py", "LSTM cell", "lstm"),
        ("pages/views/sequence.py", "Sequence", "sequence"),
        ("pages/views/gradients.py", "Gradients", "gradients"),
    ),
    "Learn": (
        ("pages/views/lessons.py", "Lessons", "lessons"),
        ("pages/views/challenges.py", "Challenges", "challenges"),
    ),
    "Fix": (
        ("pages/views/doctor.py", "Doctor", "doctor"),
        ("pages/views/catalogue.py", "Catalogue", "catalogue"),
    ),
    "Server": (("pages/views/status.py", "Status", "status"),),
}

#: In pixels.
SIDEBAR_WIDTH = 200

st.set_page_config(page_title=NAME, page_icon="➿", layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
page = st.navigation(
    {
        group: [st.Page(script, title=title, url_path=path, default=not path) for script, title, path in pages]
        for group, pages in PAGES.items()
    }
)
with in_turn():
    page_style()
    sidebar_name()
    warmed()
    enter_class(page.url_path)
    enter_lesson(page.url_path)
    class_style()
    enter_page(page.url_path)
    rail = rail_slot(page.url_path)
    with measured(page.url_path):
        page.run()
    lesson_rail(rail, page.url_path)
    class_panel(page.url_path)
