"""Samples that an earlier page left in the same folder."""

import re
from pathlib import Path

_FOLDER = re.compile(r"[0-9]{2,}-[A-Za-z0-9_-]*")
_FILE = re.compile(r"(index|documents-[0-9]+|answers-[0-9]+)\.js")


def remove_samples(site: Path) -> None:
    """Removes the samples of earlier pages; files that no page can have written stay."""
    samples = site / "samples"
    for folder in list(samples.iterdir()) if samples.is_dir() else ():
        if folder.is_symlink() or not folder.is_dir() or not _FOLDER.fullmatch(folder.name):
            continue
        for file in list(folder.iterdir()):
            if _FILE.fullmatch(file.name):
                file.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
