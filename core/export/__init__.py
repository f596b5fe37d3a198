"""What leaves a page as a file: programs, notebooks, data."""
