"""Everything Carry Lab computes. Nothing in here imports Streamlit; pages read inputs, call this, and draw."""
