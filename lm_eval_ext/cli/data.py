"""``lm-eval-ext data``: list, fetch and verify the data files."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from lm_eval_ext import data
from lm_eval_ext.data import Source, find_source
from lm_eval_ext.errors import DataError
from lm_eval_ext.text import one_line

app = typer.Typer(help="List, fetch and verify the data files.", no_args_is_help=True)

_FAULTS_SHOWN = 10
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
    typer.echo(f"{'source':20} {'files':>5} {'size':>8}  {'local':5}  licence")
    for name, source in data.sources().items():
        local = "yes" if data.available(name) else "no"
        licence = one_line(source.licence, limit=37)
        typer.echo(f"{name:20} {len(source.files):>5} {size_of(source):>8}  {local:5}  {licence}")
    typer.echo(f"They are in {data.data_folder()}; --json has revisions, files and paths.")


@app.command("fetch")
def fetch_files(names: _Names = None) -> None:
    """Download the files that are not available locally, and verify all."""
    for name, source in _sources(names):
        folder = data.require_all(name)
        done = f"{folder.fetched:,} of {len(folder.files):,} files fetched"
        typer.echo(f"{name}: {done} ({size_of(source)}) {folder.path}")


@app.command("verify")
def verify_files(names: _Names = None) -> None:
    """Compare all local files with their declared size and SHA-256, without the network."""
    bad: dict[str, int] = {}
    for name, source in _sources(names):
        faults, folder = data.inspect(name), data.folder_of(name)
        for file, fault in list(faults.items())[:_FAULTS_SHOWN]:
            typer.echo(f"{name}/{file}: {fault} ({folder / source.files[file].path})")
        if len(faults) > _FAULTS_SHOWN:
            typer.echo(f"{name}: … and {len(faults) - _FAULTS_SHOWN:,} more")
        good = f"{len(source.files) - len(faults):,} of {len(source.files):,}"
        typer.echo(f"{name}: {good} files ok ({folder})")
        if faults:
            bad[name] = len(faults)
    if bad:
        count = sum(bad.values())
        what = "1 file is" if count == 1 else f"{count:,} files are"
        raise DataError(f"{what} missing or broken; {_remedy(list(bad))}")


def size_of(source: Source) -> str:
    """Of all files, for people: ``302kB``."""
    from tqdm import tqdm

    return str(tqdm.format_sizeof(source.size, "B"))


def _sources(names: list[str] | None) -> Iterator[tuple[str, Source]]:
    """The named sources; every name is checked before any work.

    Of all sources, those that cannot be downloaded are skipped unless some of their files exist.
    """
    for name, source in [(name, find_source(name)) for name in names or data.sources()]:
        paths = (data.folder_of(name) / spec.path for spec in source.files.values())
        if not names and source.unavailable and not any(path.exists() for path in paths):
            typer.echo(f"{name}: skipped: {source.unavailable}")
        else:
            yield name, source


def _remedy(bad: list[str]) -> str:
    if data.local_copy():
        return "repair the local copy, or unset LM_EVAL_EXT_DATA so that files are downloaded"
    to_fetch = [name for name in bad if not find_source(name).unavailable]
    if not to_fetch:
        return f"{bad[0]}: {find_source(bad[0]).unavailable}"
    return f"run `lm-eval-ext data fetch {' '.join(to_fetch)}`"


def _details(name: str) -> dict[str, Any]:
    """All that is declared of a source, with the full URLs of its files."""
    source, folder = data.sources()[name], data.folder_of(name)
    files = {
        file: {**dict(spec), "url": source.url_of(spec), "local": str(folder / spec.path)}
        for file, spec in source.files.items()
    }
    available = data.available(name)
    return {
        "source": name, **dict(source), "size": source.size, "available": available, "files": files
    }  # fmt: skip
