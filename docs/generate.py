"""Fills the parts of the pages that repeat the cards and the declared data sources.

A page marks such a part with ``<!-- generated: KIND ARGUMENTS -->`` and ``<!-- end -->``:

* ``paper NAME``: the publication of a benchmark;
* ``tasks NAME [FIELD=VALUE,VALUE...]``: its tasks and groups; tasks whose names differ only in
  one of the values make one row, with ``<FIELD>`` in the place of the value;
* ``facts NAME``: facets, and what standard errors are clustered by;
* ``sources [NAME...]``: declared data sources, all if none is named;
* ``layers``: the packages and what may import what, by the import contract in pyproject.toml;
* ``effort TASK...``: requests, tokens (counted by ``docs/sizes.py``) and estimated minutes.

``python docs/generate.py`` rewrites the pages. With ``--check`` it changes nothing and exits
with status 1 if a page is out of date.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import tomllib

from lm_eval_ext.cards import TaskFacts, cards
from lm_eval_ext.data import sources

ROOT = Path(__file__).resolve().parents[1]
CODE = r"^ *```.*?^ *```$"
PART = r"^(<!-- generated: (\w+)([^\n]*?) -->\n).*?^(<!-- end -->)$"
CODE_OR_PART = re.compile(f"{CODE}|{PART}", re.DOTALL | re.MULTILINE)
COMMIT = re.compile(r"[0-9a-f]{40}")
READ_PER_S, WRITTEN_PER_S = 10_000, 500
"""Tokens that the estimates' machine reads and writes in a second; index.md says which that is."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def size(count: int) -> str:
    """A number of bytes as people write it."""
    value, unit = (count / 1e3, "kB") if count < 1e6 else (count / 1e6, "MB")  # noqa: PLR2004
    return f"{value:.{1 if 1e6 <= count < 1e8 else 0}f} {unit}"  # noqa: PLR2004


def paper(name: str) -> str:
    """Authors, title, venue and link."""
    cited = cards()[name].paper
    if cited is None:
        return ""
    last = cited.url.rstrip("/").rpartition("/")[2]
    label = f"arXiv {last}" if "arxiv.org" in cited.url else last
    title = " ".join(cited.title.split())
    return f"{cited.authors}, *{title}*, {cited.venue}, [{label}]({cited.url}).\n"


def facts(name: str) -> str:
    """What the card says about reading the scores."""
    card = cards()[name]
    facets = ", ".join(f"`{facet}`" for facet in card.facets)
    return (
        f"Facets: {facets}. Intervals and standard errors are clustered by {card.cluster.unit}.\n"
    )


def tasks(name: str, *folds: str) -> str:
    """The tasks of a benchmark, then its groups."""
    card = cards()[name]
    rows: dict[str, dict[str, tuple[str, ...]]] = {}
    for task, facts in card.tasks.items():
        asked = (facts.description, _asked([facts]), _data([facts]))
        rows.setdefault(_folded(task, folds)[0], {})[task] = asked
    for group, names in card.groups.items():
        members = [card.tasks[member] for member in names]
        listed = f"Group of {', '.join(f'`{member}`' for member in names)}"
        asked = (listed, _asked(members), _data(members))
        rows.setdefault(_folded(group, folds)[0], {})[group] = asked
    lines = []
    for place, alike in rows.items():
        if len(alike) == 1:
            lines += [(f"`{task}`", *asked) for task, asked in alike.items()]
            continue
        if len({asked[1:] for asked in alike.values()}) > 1:
            sys.exit(f"{place}: these tasks differ in size or data, so they need a row each")
        values = set().union(*(_folded(task, folds)[1] for task in alike))
        texts = [_folded(asked[0], folds)[0] for asked in alike.values()]
        (_, *same), *_ = alike.values()
        lines.append((f"`{place}`", _shared(texts) + _not_for(values, folds), *same))
    return table(("task", "description", "documents", "data"), lines)


def _folded(text: str, folds: Iterable[str]) -> tuple[str, set[str]]:
    """A text with the first value of each field replaced by ``<FIELD>``; and the values."""
    found = set()
    for field, _, values in (fold.partition("=") for fold in folds):
        for value in values.split(","):
            if value in text:
                text = text.replace(value, f"<{field}>")
                found.add(value)
                break
    return text, found


def _shared(texts: Iterable[str]) -> str:
    """The clauses that are the same in all descriptions; a colon counts where no semicolon is."""
    clauses = zip(*(text.split("; " if "; " in text else ": ") for text in texts), strict=False)
    text = "; ".join(found[0] for found in clauses if len(set(found)) == 1)
    return re.sub(r"(?<![\w`])<\w+>(?![\w`])", r"`\g<0>`", text)


def _not_for(found: set[str], folds: Iterable[str]) -> str:
    """Which of the fields' values have no such task."""
    fields = (fold.partition("=")[2].split(",") for fold in folds)
    used = (value for values in fields if found & set(values) for value in values)
    absent = [f"`{value}`" for value in used if value not in found]
    return f" (not for {', '.join(absent)})" if absent else ""


def _asked(members: Sequence[TaskFacts]) -> str:
    documents, requests = _sizes(members)
    return documents if requests == documents else f"{documents} ({requests} requests)"


def _sizes(members: Sequence[TaskFacts]) -> tuple[str, str]:
    if any(facts.is_user_data for facts in members):
        return "varies", "varies"
    documents = sum(facts.documents for facts in members)
    return f"{documents:,}", f"{sum(facts.requests for facts in members):,}"


def _data(members: Sequence[TaskFacts]) -> str:
    needed = list(dict.fromkeys(source for facts in members for source in facts.sources))
    if not needed:
        return "your own" if any(facts.is_user_data for facts in members) else "embedded"
    return size(sum(sources()[source].size for source in needed))


def declared(*names: str) -> str:
    """The declared data sources."""
    rows = []
    for name in names or sources():
        source = sources()[name]
        revision = source.revision
        if COMMIT.fullmatch(revision):
            revision = f"`{revision[:10]}`"
        linked = f"[`{name}`]({source.homepage})"
        rows.append((linked, size(source.size), revision, source.licence))
    return table(("source", "size", "revision", "licence"), rows)


def effort(*names: str) -> str:
    """What an evaluation of these tasks costs."""
    sizes = json.loads((ROOT / "docs" / "sizes.json").read_text(encoding="utf-8"))
    known = {task: facts for card in cards().values() for task, facts in card.tasks.items()}
    rows = []
    for name in names:
        documents, requests = _sizes([known[name]])
        one, asked = sizes[name], known[name].requests
        read = asked * one["prompt"]
        least, most = (
            (read / READ_PER_S + asked * written / WRITTEN_PER_S) / 60
            for written in (one["answer"], one["most"])
        )
        minutes = " to ".join(dict.fromkeys([_minutes(least), _minutes(max(least, most))]))
        written = f"{one['answer']} (at most {one['most']:,})" if one["most"] else "none"
        rows.append((f"`{name}`", documents, requests, f"{one['prompt']:,}", written, minutes))
    head = (
        "task",
        "documents",
        "requests",
        "prompt tokens per request",
        "answer tokens",
        "minutes (estimate)",
    )
    return table(head, rows)


def layers() -> str:
    """The packages from the top down, by the import contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = (one for one in contracts["tool"]["importlinter"]["contracts"] if "layers" in one)
    names = [one.replace("lm_eval_ext.", "").split(" | ") for one in found["layers"]]
    return "".join(f"1. {', '.join(f'`{name}`' for name in layer)}\n" for layer in names)


def _minutes(value: float) -> str:
    return "under 1" if value < 1 else f"{value:,.0f}"


KINDS: Mapping[str, Callable[..., str]] = {
    "paper": paper, "facts": facts, "tasks": tasks, "sources": declared,
    "effort": effort, "layers": layers,
}  # fmt: skip


def filled(text: str, place: Path) -> str:
    """A page with its generated parts renewed; code blocks stay as they are.

    Raises:
        SystemExit: If a mark is misspelt or has no end.
    """
    marks = re.sub(CODE, "", text, flags=re.DOTALL | re.MULTILINE).count("<!-- generated:")

    def fill(match: re.Match[str]) -> str:
        nonlocal marks
        start, kind, arguments, end = match.groups()
        if kind is None:
            return match.group()
        if kind not in KINDS:
            sys.exit(f"{place}: {start.strip()}: the kinds are {', '.join(KINDS)}")
        marks -= 1
        return f"{start}\n{KINDS[kind](*arguments.split())}\n{end}"

    done = CODE_OR_PART.sub(fill, text)
    if marks:
        sys.exit(f"{place}: a generated part has no <!-- end -->, or a mark is not on its own line")
    return done


def main() -> None:
    """Rewrites the pages, or says which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if stale")
    check = parser.parse_args().check
    stale = []
    pages = {
        page: filled(page.read_text(encoding="utf-8"), page.relative_to(ROOT))
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    }
    for page, new in pages.items():
        text = page.read_text(encoding="utf-8")
        if new != text:
            stale.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new, encoding="utf-8")
    if check and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run: python docs/generate.py")


if __name__ == "__main__":
    main()
