"""One Streamlit page each: read the inputs, call core, draw."""
