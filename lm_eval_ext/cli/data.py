"""``lm-eval-ext data``: list, fetch and verify the data files."""

import json
import re
from typing import Annotated, Any

import typer

from lm_eval_ext import data
from lm_eval_ext.data import Source
from lm_eval_ext.data.sources import find_source
from lm_eval_ext.errors import DataError

app = typer.Typer(help="List, fetch and verify the data files.", no_args_is_help=True)

_COMMIT = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{6,}\b")
"""A commit is shown by its first ten digits."""

_FAULTS_SHOWN = 10
_THOUSAND, _THREE_DIGITS = 1000, 100
_Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Names of sources; default: all.")
]


@app.command("list")
def list_sources(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON with paths, addresses and checksums.")
    ] = False,
) -> None:
    """List the sources of data and whether their files are available locally."""
    if as_json:
        typer.echo(json.dumps([_details(name) for name in data.sources()], indent=2))
        return
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(
        Column("source", no_wrap=True),
        *(Column(name, overflow="fold") for name in ("revision", "files")),
        Column("size", no_wrap=True),
        Column("licence", overflow="fold"),
        "local",
    )
    for name, source in data.sources().items():
        table.add_row(
            name,
            _COMMIT.sub(r"\1", source.revision),
            f"{len(source.files):,} files" if source.manifest else ", ".join(source.files),
            human_size(source.size),
            source.licence,
            "yes" if data.available(name) else "no",
        )
    Console(markup=False, emoji=False, highlight=False).print(table)
    typer.echo(f"They are in {data.data_folder()}; --json has the path of each file.")


@app.command("fetch")
def fetch_files(
    names: _Names = None,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show a bar; default: if stderr is a terminal."
        ),
    ] = None,
) -> None:
    """Download the files that are not available locally, and verify all."""
    for name, source in _sources(names).items():
        if not names and source.unavailable and not _is_there(name):
            typer.echo(f"{name}: skipped: {source.unavailable}")
        elif source.manifest:
            folder = data.require_all(name, progress=progress)
            counts = f"{folder.fetched:,} of {len(folder.files):,} files fetched"
            done = counts if folder.fetched else f"{len(folder.files):,} files already here"
            typer.echo(f"{name}: {done} ({human_size(source.size)}) {folder.path}")
        else:
            for file in source.files:
                found, fetched = data.fetch(name, file, progress=progress)
                done = "fetched" if fetched else "already here"
                typer.echo(f"{name}/{file}: {done} ({human_size(found.size)}) {found.path}")


@app.command("verify")
def verify_files(names: _Names = None) -> None:
    """Compare all local files with their declared size and SHA-256, without the network."""
    bad: dict[str, int] = {}
    for name, source in _sources(names).items():
        if not names and source.unavailable and not _is_there(name):
            typer.echo(f"{name}: skipped: {source.unavailable}")
            continue
        findings = data.inspect(name)
        typer.echo("\n".join(_verdicts(name, source, findings)))
        if faults := sum(not finding.ok for finding in findings.values()):
            bad[name] = faults
    if bad:
        count = sum(bad.values())
        what = "1 file is" if count == 1 else f"{count:,} files are"
        raise DataError(f"{what} missing or broken; {_remedy(list(bad))}")


def human_size(size: int) -> str:
    """A number of bytes for people: ``302 kB``, ``1.2 MB``."""
    if size < _THOUSAND:
        return "1 byte" if size == 1 else f"{size} bytes"
    value, units = size / _THOUSAND, ["kB", "MB", "GB"]
    while len(units) > 1 and round(value) >= _THOUSAND:
        value, units = value / _THOUSAND, units[1:]
    return f"{value:.0f} {units[0]}" if value >= _THREE_DIGITS else f"{value:.1f} {units[0]}"


def _sources(names: list[str] | None) -> dict[str, Source]:
    """The named sources, or all; every name is checked before any work."""
    return {name: find_source(name) for name in names or data.sources()}


def _is_there(name: str) -> bool:
    """Whether any file of a source exists, right or wrong."""
    return any(data.path_of(name, file).exists() for file in find_source(name).files)


def _verdicts(name: str, source: Source, findings: dict[str, data.Finding]) -> list[str]:
    """A line per file; of many files a line per bad one and a summary."""
    shown = {file: found for file, found in findings.items() if not (source.manifest and found.ok)}
    lines = [
        f"{name}/{file}: {found} ({data.path_of(name, file)})" for file, found in shown.items()
    ]
    if not source.manifest:
        return lines
    total, folder = len(findings), data.folder_of(name)
    if all(found.state == "missing" for found in findings.values()):
        return [f"{name}: missing, all {total:,} files ({folder})"]
    if len(lines) > _FAULTS_SHOWN:
        lines[_FAULTS_SHOWN:] = [f"{name}: … and {len(lines) - _FAULTS_SHOWN:,} more"]
    good = f"{total - len(shown):,} of {total:,}" if shown else f"{total:,}"
    return [*lines, f"{name}: {good} files ok ({folder})"]


def _remedy(bad: list[str]) -> str:
    if data.local_copy():
        return "repair the local copy, or unset LM_EVAL_EXT_DATA so that files are downloaded"
    to_fetch = [name for name in bad if not find_source(name).unavailable]
    if not to_fetch:
        return f"{bad[0]}: {find_source(bad[0]).unavailable}"
    return f"run `lm-eval-ext data fetch {' '.join(to_fetch)}`"


def _details(name: str) -> dict[str, Any]:
    """All that is declared of a source, with the full URLs of its files."""
    source = data.sources()[name]
    files = {
        file: {
            **spec.model_dump(),
            "url": source.url_of(spec),
            "local": str(data.path_of(name, file)),
        }
        for file, spec in source.files.items()
    }
    declared = source.model_dump(exclude={"url", "files"})
    return {
        "source": name,
        **declared,
        "size": source.size,
        "available": data.available(name),
        "files": files,
    }
