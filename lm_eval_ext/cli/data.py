"""``lm-eval-ext data``: list, fetch and verify the data files."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lm_eval_ext import data
from lm_eval_ext.data import Source, find_source
from lm_eval_ext.errors import DataError, OptionError, nearest
from lm_eval_ext.registry import BENCHMARKS
from lm_eval_ext.text import counted, one_line

if TYPE_CHECKING:
    from lm_eval_ext.data.recordings import Recordings

app = typer.Typer(
    help="List, fetch and verify the data files; convert recorded responses.", no_args_is_help=True
)

_FAULTS_SHOWN = 10
NamesArgument = Annotated[
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
def fetch_files(names: NamesArgument = None) -> None:
    """Download the files that are not available locally, and verify all."""
    for name, source in _sources(names):
        folder = data.require_all(name)
        typer.echo(
            f"{name}: {folder.fetched:,} of {len(folder.files):,} files fetched "
            f"({size_of(source)}) {folder.path}"
        )


@app.command("verify")
def verify_files(names: NamesArgument = None) -> None:
    """Compare all local files with their declared size and SHA-256, without the network."""
    fault_counts: dict[str, int] = {}
    for name, source in _sources(names):
        faults = data.inspect(name)
        folder = data.folder_of(name)
        for file, fault in list(faults.items())[:_FAULTS_SHOWN]:
            typer.echo(f"{name}/{file}: {fault} ({folder / source.files[file].path})")
        if len(faults) > _FAULTS_SHOWN:
            typer.echo(f"{name}: … and {len(faults) - _FAULTS_SHOWN:,} more")
        sound = f"{len(source.files) - len(faults):,} of {len(source.files):,}"
        typer.echo(f"{name}: {sound} files ok ({folder})")
        if faults:
            fault_counts[name] = len(faults)
    if fault_counts:
        count = sum(fault_counts.values())
        subject = "1 file is" if count == 1 else f"{count:,} files are"
        raise DataError(f"{subject} missing or broken; {_remedy(list(fault_counts))}")


@app.command("recorded")
def convert_recordings(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="lieder, magnifico or discourse_entities.")
    ],
    clone: Annotated[
        Path | None,
        typer.Argument(
            metavar="CLONE",
            help="A clone of the authors' repository. Default: the files that `data fetch` has.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")
    ],
) -> None:
    """Convert what a benchmark's authors recorded of models into files for --model recorded.

    DIR gets a model's file for each system, for `lm-eval-ext run`, and its responses.
    """
    from lm_eval_ext.data.recordings import write

    with_recordings = [name for name, listed in BENCHMARKS.items() if listed.has_recordings]
    if benchmark not in with_recordings:
        hint = nearest(benchmark, with_recordings) or f"; use {', '.join(with_recordings)}"
        raise OptionError(f"no recordings of {benchmark!r}{hint}")
    module = BENCHMARKS[benchmark].recordings()
    assert module is not None
    recordings: Recordings = module.convert(clone)
    write(recordings, out)
    responses = sum(len(system.rows) for system in recordings.systems)
    systems = counted(len(recordings.systems), "system")
    typer.echo(f"{benchmark}: {responses:,} responses of {systems} in {out}")
    for remark in recordings.remarks:
        typer.echo(remark)
    _echo_commands(recordings, out)


def _echo_commands(recordings: "Recordings", out: Path) -> None:
    """Print the commands that score what was converted."""
    from lm_eval_ext.data.recordings import MODELS_FOLDER, PREDICTIONS_FILE

    models = shlex.quote(str(out / MODELS_FOLDER))
    results = shlex.quote(str(out / "results"))
    tasks = ",".join(recordings.tasks)
    typer.echo(f"lm-eval-ext run --models {models} --tasks {tasks} --output {results}")
    typer.echo(f"lm-eval-ext show {results}")
    if recordings.predictions:
        databases = shlex.quote(str(data.folder_of("spider_databases")))
        predictions = shlex.quote(str(out / PREDICTIONS_FILE))
        scored = shlex.quote(str(out / "scored.tsv"))
        typer.echo(
            f"lm-eval-ext sql-score --databases {databases} --predictions {predictions} "
            f"--output {scored}"
        )


def size_of(source: Source) -> str:
    """Return the size of all files, for people: ``302kB``."""
    from tqdm import tqdm

    return str(tqdm.format_sizeof(source.size, "B"))


def _sources(names: list[str] | None) -> Iterator[tuple[str, Source]]:
    """Yield the named sources, or all; every name is checked before any work.

    If none is named, those that cannot be downloaded are skipped unless some of their files exist.
    """
    sources = {name: find_source(name) for name in names or data.sources()}
    for name, source in sources.items():
        if not names and source.unavailable and not _has_files(name, source):
            typer.echo(f"{name}: skipped: {source.unavailable}")
        else:
            yield name, source


def _has_files(name: str, source: Source) -> bool:
    """Return whether some files of a source are available locally."""
    folder = data.folder_of(name)
    return any((folder / spec.path).exists() for spec in source.files.values())


def _remedy(names: list[str]) -> str:
    """Return what to do about sources with missing or broken files."""
    if data.local_copy():
        return "repair the local copy, or unset LM_EVAL_EXT_DATA so that files are downloaded"
    to_fetch = [name for name in names if not find_source(name).unavailable]
    if not to_fetch:
        return f"{names[0]}: {find_source(names[0]).unavailable}"
    return f"run `lm-eval-ext data fetch {' '.join(to_fetch)}`"


def _details(name: str) -> dict[str, Any]:
    """Return all that is declared of a source, with the full URLs of its files."""
    source = data.sources()[name]
    folder = data.folder_of(name)
    files = {}
    for file, spec in source.files.items():
        local = str(folder / spec.path)
        files[file] = {**dict(spec), "url": source.url_of(spec), "local": local}
    return {
        "source": name,
        **dict(source),
        "size": source.size,
        "available": data.available(name),
        "files": files,
    }
