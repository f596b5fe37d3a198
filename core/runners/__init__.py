"""What runs: compiled scans with their trajectory, the loop beside them, the store of programs, the warm-up."""
