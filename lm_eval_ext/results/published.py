"""Published results beside ours: which model they are of."""

import re

PAPER = "(paper)"


def plain_name(label: str) -> str:
    """A model's name without case, punctuation and "(paper)", to match it with published ones."""
    name = label.casefold().replace(PAPER, "").rpartition("/")[2]
    return re.sub(r"[^a-z0-9]+", "", name)
