"""``lm-eval-ext sql``: judging SQL of any system, comparing two systems, explaining a verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lm_eval_ext.cli.shared_options import JsonOption
from lm_eval_ext.cli.sql_options import (
    DEFAULT_SEMANTICS,
    BuildSuiteOption,
    ByOption,
    DatabasesOption,
    ExtractOption,
    JudgeFlags,
    NoQuotesOption,
    SemanticsOption,
    SuiteOption,
    TimeoutOption,
    WorkersOption,
    json_text,
)
from lm_eval_ext.cli.sql_score import sql_score
from lm_eval_ext.errors import OptionError
from lm_eval_ext.text import names_in

if TYPE_CHECKING:
    from lm_eval_ext.sql.explaining import ExplainedRow
    from lm_eval_ext.sql.scoring import JudgeOptions
    from lm_eval_ext.sql.values import Prediction

app = typer.Typer(
    help="SQL of any system: score it, compare two systems, explain one verdict.",
    no_args_is_help=True,
)
app.command("score")(sql_score)


FileAArgument = Annotated[
    Path, typer.Argument(metavar="FILE_A", help="The predictions of system A, as for score.")
]
FileBArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE_B", help="The predictions of system B, on the same questions."),
]
MatchOption = Annotated[
    str,
    typer.Option(
        "--match",
        metavar="COLUMN",
        help="The column by which rows belong together, such as question_id; several with commas. "
        "Default: db_id and gold_sql.",
    ),
]
PairsOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the rows with both verdicts, .csv, .tsv or .jsonl; an interrupted command then "
        "continues.",
    ),
]
OptionalDatabasesOption = Annotated[
    str,
    typer.Option(
        "--databases",
        metavar="DB",
        help="A database or a folder of several, as for score; not for --results.",
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions", metavar="FILE", help="A file of predictions, as for score; with --row."
    ),
]
RowOption = Annotated[
    int | None,
    typer.Option(
        "--row", help="The number of a row of FILE; the first is 1, a header does not count."
    ),
]
GoldOption = Annotated[
    str, typer.Option("--gold", metavar="SQL", help="The gold query, instead of FILE.")
]
PredictedOption = Annotated[
    str, typer.Option("--predicted", metavar="SQL", help="The prediction, with --gold.")
]
DatabaseIdOption = Annotated[
    str, typer.Option("--db-id", help="The database, where DB is a folder of several.")
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="PATH",
        help="Results of a MAGNIFICo task with logged samples; with --doc.",
    ),
]
DocumentOption = Annotated[str, typer.Option("--doc", metavar="ID", help="A document of the task.")]
TaskOption = Annotated[str, typer.Option("--task", help="The task, if there are several.")]
ModelOption = Annotated[str, typer.Option("--model", help="The model, if there are several.")]


@app.command("compare")
def compare(
    file_a: FileAArgument,
    file_b: FileBArgument,
    *,
    databases: DatabasesOption,
    semantics: SemanticsOption = DEFAULT_SEMANTICS,
    suite: SuiteOption = None,
    build_suite: BuildSuiteOption = False,
    extract: ExtractOption = False,
    by: ByOption = "",
    match: MatchOption = "",
    no_quotes: NoQuotesOption = False,
    timeout: TimeoutOption = None,
    workers: WorkersOption = 2,
    out: PairsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge two files of predictions and test the difference of their accuracies."""
    from lm_eval_ext.cli import resumable
    from lm_eval_ext.cli.sql_screens import comparison_screen
    from lm_eval_ext.sql.comparing import compare_files

    flags = JudgeFlags(databases, semantics, suite, build_suite, extract, no_quotes)
    options = flags.judge_options(timeout, workers)
    with resumable():
        comparison = compare_files(
            (file_a, file_b), options, by=names_in(by), match=names_in(match), out=out
        )
    if as_json:
        typer.echo(json_text(comparison.as_dict()))
    else:
        typer.echo(comparison_screen(comparison, file_a, flags), nl=False)


@app.command("explain")
def explain(
    *,
    databases: OptionalDatabasesOption = "",
    predictions: FileOption = None,
    row: RowOption = None,
    gold: GoldOption = "",
    predicted: PredictedOption = "",
    db_id: DatabaseIdOption = "",
    results: ResultsOption = None,
    doc: DocumentOption = "",
    task: TaskOption = "",
    model: ModelOption = "",
    semantics: SemanticsOption = DEFAULT_SEMANTICS,
    suite: SuiteOption = None,
    build_suite: BuildSuiteOption = False,
    extract: ExtractOption = False,
    no_quotes: NoQuotesOption = False,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a prediction and its gold return, and the smallest rows on which they differ."""
    from lm_eval_ext.cli.sql_screens import explanation_screen
    from lm_eval_ext.sql.values import Prediction

    if results is not None:
        explained = _explained_sample(results, doc, task, model)
    else:
        flags = JudgeFlags(databases, semantics, suite, build_suite, extract, no_quotes)
        options = flags.judge_options(timeout, workers=1)
        explained = _explained(options, predictions, row, Prediction(db_id, gold, predicted))
    if as_json:
        typer.echo(json_text(explained.as_dict()))
    else:
        typer.echo(explanation_screen(explained), nl=False)


def _explained_sample(results: Path, document: str, task: str, model: str) -> "ExplainedRow":
    from lm_eval_ext.api.explaining import SampleRef, explain_sample

    if not document:
        raise OptionError("--results needs --doc ID; lm-eval-ext samples lists documents")
    return explain_sample([results], SampleRef(document, task, model))


def _explained(
    options: "JudgeOptions", predictions: Path | None, row: int | None, texts: "Prediction"
) -> "ExplainedRow":
    """Explain a row of a file, or a prediction whose texts are all options."""
    from lm_eval_ext.sql import explaining
    from lm_eval_ext.sql.scoring import read_file

    if not options.databases:
        raise OptionError("--databases DB is missing, or --results PATH with --doc ID")
    if predictions is not None and row is not None and not texts.gold:
        file = read_file(predictions, options)
        prediction, answer = explaining.row_of(file, row)
        title = f"row {row} of {predictions.name}"
        return explaining.explain(prediction, title, options, file, answer=answer)
    if texts.gold and texts.predicted and predictions is None and row is None:
        prediction, answer = explaining.prediction_of(
            texts.gold, texts.predicted, texts.db_id, options
        )
        return explaining.explain(prediction, "the prediction", options, answer=answer)
    raise OptionError(
        "name --predictions FILE with --row N, or --gold SQL with --predicted SQL, or --results "
        "PATH with --doc ID"
    )
