"""Keeps the results of real models for docs/results.md, and makes the tables of that page.

``python docs/kept_results.py RESULTS`` copies the results files of ``lm-eval-ext run --output
RESULTS`` to docs/real_models/MODEL/, as far as ``show`` and ``leaderboard`` read them: values,
intervals, signatures and settings. The texts of the benchmarks, the models' answers, and the paths
and facts of the machine are left out.

docs/generate.py asks :func:`table` for the tables.
"""

import argparse
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import lm_eval_ext

FOLDER = Path(__file__).with_name("real_models")

SYSTEMS = (
    "smollm2-bare", "smollm2-chat", "gemma-bare", "qwen0.5b-bare", "qwen0.5b-chat",
    "qwen1.5b-bare", "qwen1.5b-chat",
)  # fmt: skip
"""The systems' folders in the order of the tables: by size, then without and with a template."""

FILE_KEYS = (
    "results", "group_subtasks", "versions", "n-shot", "higher_is_better", "n-samples", "run",
    "tokens", "date", "transformers_version", "lm_eval_version", "model_source",
    "system_instruction", "system_instruction_sha", "fewshot_as_multiturn", "chat_template_sha",
    "total_evaluation_time_seconds",
)  # fmt: skip
"""What a kept file has of lm-eval's, besides the settings and the tasks' configurations.

The digest of the weights is left out: it has the times of files, which differ on each machine,
although the weights are those of the same packages."""

SETTINGS = (
    "model", "batch_size", "limit", "gen_kwargs", "model_num_parameters", "model_dtype",
    "fewshot_seed",
)  # fmt: skip
"""What a kept file has of the settings.

The seed of the demonstrations is part of a signature: without it, these results would not be
comparable with any others of a task that shows demonstrations."""

CONFIG_KEYS = ("task", "metric_list", "output_type", "num_fewshot", "repeats")
"""What a kept file has of a task's configuration, besides its metadata."""

METADATA_KEYS = ("version", "signature", "benchmark", "intervals", "lm_eval_ext")
"""What a kept file has of a task's metadata."""


def kept(content: dict[str, Any], model_name: str) -> dict[str, Any]:
    """Return the part of a results file that is kept.

    Args:
        content: The results file.
        model_name: What stands in the place of the path of the model's folder.
    """
    configs = {}
    for task, config in content["configs"].items():
        configs[task] = {key: config[key] for key in CONFIG_KEYS if key in config}
        metadata = config["metadata"]
        configs[task]["metadata"] = {key: metadata[key] for key in METADATA_KEYS if key in metadata}
    settings = {key: content["config"].get(key) for key in SETTINGS}
    arguments = content["config"].get("model_args") or {}
    settings["model_args"] = {**arguments, "pretrained": model_name}
    part = {key: content[key] for key in FILE_KEYS if key in content}
    # A report says "chat" where a results file has a template; its text is the model's own.
    template = content.get("chat_template")
    if template is not None:
        template = "left out"
    return {
        **part,
        "configs": configs,
        "config": settings,
        "model_name": model_name,
        "chat_template": template,
    }


def keep(results: Path, folder: Path) -> None:
    """Keep the results of each model in a folder of ``lm-eval-ext run``."""
    for model_file in sorted(results.glob("*/model.yaml")):
        results_files = sorted(model_file.parent.glob("results_*.json"))
        if not results_files:  # the evaluation was interrupted
            continue
        model = yaml.safe_load(model_file.read_text(encoding="utf-8"))
        model_name = Path(model["model_args"]["pretrained"]).name
        model["model_args"]["pretrained"] = model_name
        target = folder / model_file.parent.name
        target.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(model, sort_keys=False, allow_unicode=True)
        (target / "model.yaml").write_text(text, encoding="utf-8")
        for file in results_files:
            content = kept(json.loads(file.read_text(encoding="utf-8")), model_name)
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
            (target / file.name).write_text(text + "\n", encoding="utf-8")


def _folders() -> list[Path]:
    """Return the folders with kept results, in the order of the tables."""
    folders = [FOLDER / system for system in SYSTEMS]
    return [folder for folder in folders if any(folder.glob("results_*.json"))]


@functools.cache
def _figures() -> pd.DataFrame:
    """Return all values of the kept results, with their intervals."""
    folders = [str(folder) for folder in _folders()]
    return lm_eval_ext.load_results(folders).to_dataframe()


def table(columns: Mapping[tuple[str, str], str]) -> list[list[str]]:
    """Return the rows of a table: a head, then a row for each model that has such a value.

    Args:
        columns: The head of each column, by task and metric.
    """
    rows = [["model", *columns.values()]]
    for model, of_model in _figures().groupby("model", sort=False):
        by_column = of_model.set_index(["task", "metric"])
        cells = []
        for column in columns:
            cells.append(_value(by_column.loc[column]) if column in by_column.index else "")
        if any(cells):
            rows.append([str(model), *cells])
    return rows


def minutes_table() -> list[list[str]]:
    """Return the rows of a table of minutes that the evaluations took, by model and benchmark."""
    minutes: dict[str, dict[str, float]] = {}
    for folder in _folders():
        model = yaml.safe_load((folder / "model.yaml").read_text(encoding="utf-8"))
        of_model = minutes.setdefault(model["display_name"], {})
        for file in folder.glob("results_*.json"):
            content = json.loads(file.read_text(encoding="utf-8"))
            # A file has the tasks of one benchmark.
            benchmark = next(iter(content["configs"].values()))["metadata"]["benchmark"]
            seconds = float(content["total_evaluation_time_seconds"])
            of_model[benchmark] = of_model.get(benchmark, 0.0) + seconds / 60
    benchmarks = sorted({benchmark for of_model in minutes.values() for benchmark in of_model})
    rows = [["model", *benchmarks, "together"]]
    for name, of_model in minutes.items():
        cells = [
            f"{of_model[benchmark]:.0f}" if benchmark in of_model else ""
            for benchmark in benchmarks
        ]
        rows.append([name, *cells, f"{sum(of_model.values()):.0f}"])
    return rows


def _value(figure: pd.Series) -> str:
    """Return a value with its interval, if it has one, as the page writes it."""
    if pd.isna(figure["value"]):
        return "N/A"
    text = _number(figure["value"], figure["unit"])
    if pd.isna(figure["low"]):
        return text
    low = _number(figure["low"], figure["unit"])
    high = _number(figure["high"], figure["unit"])
    return f"{text} [{low}, {high}]"


def _number(value: float, unit: str) -> str:
    """Return a number in the digits of the tables: per cent with one decimal, shares with three."""
    if unit == "percent":
        return f"{value:.1f} %"
    sign = "-" if value < 0 else ""
    return sign + f"{abs(value):.3f}".removeprefix("0")


def main() -> None:
    """Keep results that were just computed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="the folder of lm-eval-ext run --output")
    keep(parser.parse_args().results, FOLDER)


if __name__ == "__main__":
    main()
