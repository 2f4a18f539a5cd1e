"""Compiling LaTeX, where a compiler is at hand."""

import shutil
import subprocess
from pathlib import Path

import pytest

DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\begin{document}
%s
\end{document}
"""


def compiled(source: str, folder: Path) -> str:
    """Compiles tables with booktabs and nothing else; returns the log. Skips without a compiler."""
    compilers = {"pdflatex": ["-interaction=nonstopmode", "-halt-on-error"], "tectonic": ["-k"]}
    name = next((name for name in compilers if shutil.which(name)), None)
    if name is None:
        pytest.skip("neither pdflatex nor tectonic is installed")
    file = folder / "tables.tex"
    file.write_text(DOCUMENT % source, encoding="utf-8")
    done = subprocess.run(
        [name, *compilers[name], file.name],
        cwd=folder,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    log = done.stdout.decode(errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert (folder / "tables.pdf").stat().st_size > 1000
    return log
