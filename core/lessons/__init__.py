"""Lessons: short texts tied to live controls. What they say is data, a Markdown file each, which a teacher can write."""
