"""``lm-eval-ext data``: list, fetch, verify and locate the data files."""

import json
from typing import Annotated, Any

import typer

from lm_eval_ext import data
from lm_eval_ext.data.sources import find_source
from lm_eval_ext.errors import DataError

app = typer.Typer(help="The data files: what there is, fetching, verifying.", no_args_is_help=True)

_REVISION_SHOWN = 10
_THOUSAND, _THREE_DIGITS = 1000, 100
_Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Sources; all if none is named.")
]


@app.command("list")
def list_sources(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with every detail.")] = False,
) -> None:
    """Show the declared sources and whether their files are at hand."""
    if as_json:
        typer.echo(json.dumps([_details(name) for name in data.sources()], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("source", "revision", "files", "size", "licence", "at hand")
    for name, source in data.sources().items():
        table.add_row(
            name,
            source.revision[:_REVISION_SHOWN],
            ", ".join(source.files),
            human_size(source.size),
            source.licence,
            "yes" if data.at_hand(name) else "no",
        )
    Console(markup=False, emoji=False, highlight=False).print(table)


@app.command("fetch")
def fetch_files(
    names: _Names = None,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Default: if stderr is a terminal."),
    ] = None,
) -> None:
    """Download what is not at hand yet, and verify every file."""
    for source, file in _files(names):
        found, fetched = data.fetch(source, file, progress=progress)
        done = "fetched" if fetched else "already here"
        typer.echo(f"{source}/{file}: {done} ({human_size(found.size)}) {found.path}")


@app.command("verify")
def verify_files(names: _Names = None) -> None:
    """Compare every local file with its declared size and SHA-256; touch no network."""
    bad: dict[str, int] = {}
    for source, file in _files(names):
        finding = data.inspect(source, file)
        typer.echo(f"{source}/{file}: {finding} ({data.path_of(source, file)})")
        if not finding.ok:
            bad[source] = bad.get(source, 0) + 1
    if bad:
        count = sum(bad.values())
        what = "1 file is" if count == 1 else f"{count} files are"
        remedy = f"run `lm-eval-ext data fetch {' '.join(bad)}`"
        if data.local_copy():
            remedy = "repair the local copy, or unset LM_EVAL_EXT_DATA so that files are downloaded"
        raise DataError(f"{what} missing or broken; {remedy}")


@app.command("path")
def print_paths(
    name: Annotated[str | None, typer.Argument(help="A source: prints its files.")] = None,
) -> None:
    """Print the folder where the files lie, or the files of one source, one per line."""
    if name is None:
        typer.echo(data.data_folder())
        return
    for source, file in _files([name]):
        typer.echo(data.path_of(source, file))


def human_size(size: int) -> str:
    """Returns a number of bytes as people write it: ``302 kB``, ``1.2 MB``."""
    if size < _THOUSAND:
        return "1 byte" if size == 1 else f"{size} bytes"
    value, units = size / _THOUSAND, ["kB", "MB", "GB"]
    while len(units) > 1 and round(value) >= _THOUSAND:
        value, units = value / _THOUSAND, units[1:]
    return f"{value:.0f} {units[0]}" if value >= _THREE_DIGITS else f"{value:.1f} {units[0]}"


def _files(names: list[str] | None) -> list[tuple[str, str]]:
    """Returns (source, file) of all named sources; every name is checked before any work."""
    chosen = {name: find_source(name) for name in names or data.sources()}
    return [(name, file) for name, source in chosen.items() for file in source.files]


def _details(name: str) -> dict[str, Any]:
    """Returns all that is declared of a source, with the files' whole URLs."""
    source = data.sources()[name]
    files = {
        file: {**spec.model_dump(), "url": source.url_of(spec)}
        for file, spec in source.files.items()
    }
    declared = source.model_dump(exclude={"url", "files"})
    at_hand = data.at_hand(name)
    return {"source": name, **declared, "size": source.size, "at_hand": at_hand, "files": files}
