"""Streamlit pages: `views` holds one script a page, `widgets` what they share. No page script lies here itself."""
