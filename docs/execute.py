"""Executes the Python of docs/python.md and puts what it prints below it.

A ``text`` block that follows a ``python`` block is its output. All blocks share their names, as the
cells of a notebook do, and run in an empty folder.

``python docs/execute.py`` rewrites the page. With ``--check`` it changes nothing and exits with
status 1 if the page is out of date.
"""

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("python.md")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE)


def executed(page: str) -> str:
    """Return a page with the output of each of its blocks."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        code = block[1]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(code, PAGE.name, "exec"), names)
        text = f"```python\n{code}```\n"
        printed = "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())
        if printed:
            text += f"\n```text\n{printed}```\n"
        return text

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # contextlib.chdir is Python 3.11's
        try:
            return BLOCK.sub(run, page)
        finally:
            os.chdir(before)


def main() -> None:
    """Rewrites the page, or says that it is out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if stale")
    check = parser.parse_args().check
    os.environ["TQDM_DISABLE"] = "1"
    text = PAGE.read_text(encoding="utf-8")
    new = executed(text)
    if new != text and check:
        sys.exit(f"out of date: docs/{PAGE.name}; run: python docs/execute.py")
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
