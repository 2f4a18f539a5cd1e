"""Compiling LaTeX, where a compiler is at hand."""

import shutil
import subprocess
from pathlib import Path

import pytest

DOCUMENT = r"""\documentclass[OPTIONS]{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\begin{document}
TABLES
\end{document}
"""
COMPILERS = {
    "pdflatex": ["-interaction=nonstopmode", "-halt-on-error"],
    "tectonic": ["-k"],
}
"""The programs that may compile a document, in order, with their options."""


def compiler_command() -> list[str]:
    """Return the command of a compiler that is installed; skip the test without one."""
    for program, options in COMPILERS.items():
        if shutil.which(program):
            return [program, *options]
    pytest.skip("neither pdflatex nor tectonic is installed")


def compiled(tables: str, folder: Path, *, options: str = "") -> str:
    """Compile tables with booktabs and nothing else; return the log. Skips without a compiler.

    Args:
        tables: The source.
        folder: Where it is compiled.
        options: Options of the class article, such as twocolumn.
    """
    command = compiler_command()
    file = folder / "tables.tex"
    document = DOCUMENT.replace("OPTIONS", options).replace("TABLES", tables)
    file.write_text(document, encoding="utf-8")
    completed = subprocess.run(
        [*command, file.name],
        cwd=folder,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    log = completed.stdout.decode(errors="replace")
    assert completed.returncode == 0, log[-3000:]
    assert (folder / "tables.pdf").stat().st_size > 1000
    return log
