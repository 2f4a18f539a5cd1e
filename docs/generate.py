"""Fills the parts of the pages that repeat the cards, the declared data sources and kept results.

A page marks such a part with ``<!-- generated: KIND ARGUMENTS -->`` and ``<!-- end -->``:

* ``paper NAME``: the publication of a benchmark;
* ``tasks NAME [FIELD=VALUE,VALUE...]``: its tasks and groups; tasks whose names differ only in
  one of the values make one row, with ``<FIELD>`` in the place of the value;
* ``facts NAME``: facets, and what standard errors are clustered by;
* ``sources [NAME...]``: declared data sources, all if none is named;
* ``layers``: the packages and what may import what, by the import contract in pyproject.toml;
* ``effort TASK...``: requests, tokens (counted by ``docs/sizes.py``) and estimated minutes;
* ``results TASK METRIC...``: what the models of docs/real_models got, a column for each metric;
* ``headlines TASK:METRIC...``: the same for metrics of several tasks;
* ``bare_headlines TASK:METRIC...``: the same, of models without a chat template;
* ``minutes``: how long these models' evaluations took.

``python docs/generate.py`` rewrites the pages. With ``--check`` it changes nothing and exits
with status 1 if a page is out of date.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import kept_results
import tomllib

from lm_eval_ext.cards import TaskFacts, cards
from lm_eval_ext.data import sources

ROOT = Path(__file__).resolve().parents[1]

CODE = r"^ *```.*?^ *```$"
PART = r"^(<!-- generated: (\w+)([^\n]*?) -->\n).*?^(<!-- end -->)$"
CODE_OR_PART = re.compile(f"{CODE}|{PART}", re.DOTALL | re.MULTILINE)
COMMIT = re.compile(r"[0-9a-f]{40}")

KILOBYTE, MEGABYTE = 1e3, 1e6
DECIMALS_UP_TO = 100 * MEGABYTE
"""A size from one to a hundred megabytes has a decimal place."""

READ_PER_S, WRITTEN_PER_S = 10_000, 500
"""Tokens that the estimates' machine reads and writes in a second; index.md says which that is."""


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def size_text(byte_count: int) -> str:
    """Return a number of bytes as people write it."""
    if byte_count < MEGABYTE:
        return f"{byte_count / KILOBYTE:.0f} kB"
    megabytes = byte_count / MEGABYTE
    if byte_count < DECIMALS_UP_TO:
        return f"{megabytes:.1f} MB"
    return f"{megabytes:.0f} MB"


def paper(benchmark: str) -> str:
    """Return authors, title, venue and link of a benchmark's publication."""
    publication = cards()[benchmark].paper
    if publication is None:
        return ""
    label = publication.url.rstrip("/").rpartition("/")[2]
    if "arxiv.org" in publication.url:
        label = f"arXiv {label}"
    title = " ".join(publication.title.split())
    link = f"[{label}]({publication.url})"
    return f"{publication.authors}, *{title}*, {publication.venue}, {link}.\n"


def facts(benchmark: str) -> str:
    """Return what the card says about reading the scores."""
    card = cards()[benchmark]
    facets = ", ".join(f"`{facet}`" for facet in card.facets)
    return (
        f"Facets: {facets}. Intervals and standard errors are clustered by {card.cluster.unit}.\n"
    )


def tasks(benchmark: str, *folds: str) -> str:
    """Return a table of a benchmark's tasks, then its groups.

    Args:
        benchmark: The name of its card.
        folds: Fields with their values, ``FIELD=VALUE,VALUE``: tasks whose names differ only in
            the value of a field make one row.
    """
    card = cards()[benchmark]
    # The cells after the name, by task, of the tasks that make one row.
    cells_by_row: dict[str, dict[str, tuple[str, ...]]] = {}
    for task, task_facts in card.tasks.items():
        cells = (task_facts.description, _documents([task_facts]), _data([task_facts]))
        cells_by_row.setdefault(_folded(task, folds)[0], {})[task] = cells
    for group, names in card.groups.items():
        members = [card.tasks[member] for member in names]
        description = f"Group of {', '.join(f'`{member}`' for member in names)}"
        cells = (description, _documents(members), _data(members))
        cells_by_row.setdefault(_folded(group, folds)[0], {})[group] = cells
    lines: list[tuple[str, ...]] = []
    for row_name, cells_by_task in cells_by_row.items():
        if len(cells_by_task) == 1:
            lines += [(f"`{task}`", *cells) for task, cells in cells_by_task.items()]
        else:
            lines.append(_folded_row(row_name, cells_by_task, folds))
    return markdown_table(("task", "description", "documents", "data"), lines)


def _folded_row(
    row_name: str, cells_by_task: Mapping[str, tuple[str, ...]], folds: Iterable[str]
) -> tuple[str, ...]:
    """Return the row that several tasks make together."""
    if len({cells[1:] for cells in cells_by_task.values()}) > 1:
        sys.exit(f"{row_name}: these tasks differ in size or data, so they need a row each")
    values = set().union(*(_folded(task, folds)[1] for task in cells_by_task))
    descriptions = [_folded(cells[0], folds)[0] for cells in cells_by_task.values()]
    _, *equal_cells = next(iter(cells_by_task.values()))
    description = _common_clauses(descriptions) + _absent_values(values, folds)
    return (f"`{row_name}`", description, *equal_cells)


def _folded(text: str, folds: Iterable[str]) -> tuple[str, set[str]]:
    """Return a text with the first value of each field as ``<FIELD>``, and these values."""
    replaced = set()
    for fold in folds:
        field, _, values = fold.partition("=")
        for value in values.split(","):
            if value in text:
                text = text.replace(value, f"<{field}>")
                replaced.add(value)
                break
    return text, replaced


def _common_clauses(descriptions: Sequence[str]) -> str:
    """Return the clauses that all descriptions have; a colon divides where no semicolon does."""
    clauses = [
        description.split("; " if "; " in description else ": ") for description in descriptions
    ]
    common = []
    for alternatives in zip(*clauses, strict=False):
        if len(set(alternatives)) == 1:
            common.append(alternatives[0])
    return re.sub(r"(?<![\w`])<\w+>(?![\w`])", r"`\g<0>`", "; ".join(common))


def _absent_values(present: set[str], folds: Iterable[str]) -> str:
    """Return a remark on the values of the used fields for which there is no task."""
    absent = []
    for fold in folds:
        values = fold.partition("=")[2].split(",")
        if present & set(values):
            absent += [f"`{value}`" for value in values if value not in present]
    return f" (not for {', '.join(absent)})" if absent else ""


def _documents(members: Sequence[TaskFacts]) -> str:
    """Return the number of documents, with that of requests where it differs."""
    documents, requests = _sizes(members)
    return documents if requests == documents else f"{documents} ({requests} requests)"


def _sizes(members: Sequence[TaskFacts]) -> tuple[str, str]:
    """Return the numbers of documents and of requests of some tasks."""
    if any(task_facts.is_user_data for task_facts in members):
        return "varies", "varies"
    documents = sum(task_facts.documents for task_facts in members)
    requests = sum(task_facts.requests for task_facts in members)
    return f"{documents:,}", f"{requests:,}"


def _data(members: Sequence[TaskFacts]) -> str:
    """Return how much some tasks download, or where their data come from."""
    needed = {source for task_facts in members for source in task_facts.sources}
    if needed:
        return size_text(sum(sources()[source].size for source in needed))
    is_user_data = any(task_facts.is_user_data for task_facts in members)
    return "your own" if is_user_data else "embedded"


def declared_sources(*names: str) -> str:
    """Return a table of declared data sources, of all if none is named."""
    rows = []
    for name in names or sources():
        source = sources()[name]
        revision = source.revision
        if COMMIT.fullmatch(revision):
            revision = f"`{revision[:10]}`"
        link = f"[`{name}`]({source.homepage})"
        rows.append((link, size_text(source.size), revision, source.licence))
    return markdown_table(("source", "size", "revision", "licence"), rows)


def effort(*names: str) -> str:
    """Return a table of what an evaluation of these tasks costs."""
    counts = json.loads((ROOT / "docs" / "sizes.json").read_text(encoding="utf-8"))
    facts_by_task = {
        task: task_facts for card in cards().values() for task, task_facts in card.tasks.items()
    }
    rows = []
    for name in names:
        documents, requests = _sizes([facts_by_task[name]])
        count = counts[name]
        request_count = facts_by_task[name].requests
        seconds_to_read = request_count * count["prompt"] / READ_PER_S
        fewest = seconds_to_read + request_count * count["answer"] / WRITTEN_PER_S
        most = seconds_to_read + request_count * count["most"] / WRITTEN_PER_S
        # Both may be the same text.
        minutes = dict.fromkeys([_minutes(fewest), _minutes(max(fewest, most))])
        written = f"{count['answer']} (at most {count['most']:,})" if count["most"] else "none"
        rows.append(
            (
                f"`{name}`",
                documents,
                requests,
                f"{count['prompt']:,}",
                written,
                " to ".join(minutes),
            )
        )
    head = (
        "task",
        "documents",
        "requests",
        "prompt tokens per request",
        "answer tokens",
        "minutes (estimate)",
    )
    return markdown_table(head, rows)


def _minutes(seconds: float) -> str:
    """Return a time in minutes, as the tables write it."""
    minutes = seconds / 60
    return "under 1" if minutes < 1 else f"{minutes:,.0f}"


def layers() -> str:
    """Return the packages from the top down, by the import contract."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layered,) = (contract for contract in contracts if "layers" in contract)
    lines = []
    for layer in layered["layers"]:
        packages = layer.replace("lm_eval_ext.", "").split(" | ")
        lines.append(f"1. {', '.join(f'`{package}`' for package in packages)}\n")
    return "".join(lines)


def results(task: str, *metrics: str) -> str:
    """Return a table of what the models of docs/real_models got in a task, by metric."""
    return _results_table({(task, metric): f"`{metric}`" for metric in metrics})


def headlines(*columns: str) -> str:
    """Return a table of what these models got in several tasks: each is ``TASK:METRIC``."""
    return _results_table(_heads(columns))


def bare_headlines(*columns: str) -> str:
    """Return the same table of models that got plain prompts."""
    head, *rows = kept_results.table(_heads(columns))
    return markdown_table(head, [row for row in rows if row[0].endswith(", bare")])


def _heads(columns: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the heads of columns that are given as ``TASK:METRIC``."""
    heads = {}
    for column in columns:
        task, _, metric = column.partition(":")
        heads[task, metric] = f"`{task}`, {metric.replace('_', ' ')}"
    return heads


def _results_table(heads: Mapping[tuple[str, str], str]) -> str:
    """Return a table of kept results as Markdown."""
    head, *rows = kept_results.table(heads)
    return markdown_table(head, rows)


def minutes() -> str:
    """Return a table of how long these models' evaluations took."""
    head, *rows = kept_results.minutes_table()
    return markdown_table(head, rows)


KINDS: Mapping[str, Callable[..., str]] = {
    "paper": paper, "facts": facts, "tasks": tasks, "sources": declared_sources,
    "effort": effort, "layers": layers, "results": results,
    "headlines": headlines, "bare_headlines": bare_headlines, "minutes": minutes,
}  # fmt: skip


def filled(text: str, page: Path) -> str:
    """Return a page with its generated parts renewed; code blocks stay as they are.

    Raises:
        SystemExit: A mark is misspelt or has no end.
    """
    text_without_code = re.sub(CODE, "", text, flags=re.DOTALL | re.MULTILINE)
    mark_count = text_without_code.count("<!-- generated:")

    def fill(match: re.Match[str]) -> str:
        nonlocal mark_count
        start, kind, arguments, end = match.groups()
        if kind is None:  # a code block
            return match.group()
        if kind not in KINDS:
            sys.exit(f"{page}: {start.strip()}: the kinds are {', '.join(KINDS)}")
        mark_count -= 1
        return f"{start}\n{KINDS[kind](*arguments.split())}\n{end}"

    new_text = CODE_OR_PART.sub(fill, text)
    if mark_count:
        sys.exit(f"{page}: a generated part has no <!-- end -->, or a mark is not on its own line")
    return new_text


def main() -> None:
    """Rewrite the pages, or say which are out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if stale")
    only_checks = parser.parse_args().check
    stale = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = page.relative_to(ROOT)
        text = page.read_text(encoding="utf-8")
        new_text = filled(text, name)
        if new_text != text:
            stale.append(str(name))
            if not only_checks:
                page.write_text(new_text, encoding="utf-8")
    if only_checks and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run: python docs/generate.py")


if __name__ == "__main__":
    main()
