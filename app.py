"""Carry Lab: page config, navigation, frame; nothing else.

Started by `make run` (deploy/run.py). Scripts live in pages/views: a flat `pages/x.py` would be run by Streamlit itself,
past this file, on the first deep link of a fresh process.
"""

import streamlit as st

from pages.widgets.classroom import class_panel, class_style, enter_class
from pages.widgets.frame import NAME, page_style, sidebar_name, warmed
from pages.widgets.state import enter_page

#: Navigation: group -> (script, title, URL path; "" is the root).
PAGES = {
    "Play": (
        ("pages/views/scan.py", "Scan", ""),
        ("pages/views/lstm.py", "LSTM cell", "lstm"),
        ("pages/views/sequence.py", "Sequence", "sequence"),
        ("pages/views/gradients.py", "Gradients", "gradients"),
    ),
    "Fix": (
        ("pages/views/doctor.py", "Doctor", "doctor"),
        ("pages/views/catalogue.py", "Catalogue", "catalogue"),
    ),
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
page_style()
sidebar_name()
warmed()
enter_class()
class_style()
enter_page(page.url_path)
page.run()
class_panel()
