"""What the pages share: state and link, verdict strip, violation cards, editors, player."""
