"""Recordings of LIEDER: log-probabilities of tokens in the authors' form, of items of our own."""

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.logged import evaluate
from support.recordings import DeclaredSource, declare, json_lines, write_copy

from lm_eval_ext import load_results
from lm_eval_ext.benchmarks.lieder import items, recordings
from lm_eval_ext.benchmarks.lieder.records import Experiment, Sentence
from lm_eval_ext.benchmarks.lieder.score import metrics_of
from lm_eval_ext.errors import DataError

EXPERIMENTS: tuple[Experiment, ...] = ("base", "diff", "two")
ENDINGS = {"s": "sref", "p": "pref", "nonref": "nonref"}


def named_sentences(experiment: Experiment) -> list[tuple[str, Sentence]]:
    """Return the sentences of one item of ours, with their ids."""
    named = []
    for group in items.draw_groups(1, "seed 0", experiment):
        for sentence in group.sentences:
            ending = ENDINGS[sentence.condition.rpartition("_")[2]]
            named.append((f"{group.item}_{group.family}_{ending}", sentence))
    return named


def stimuli(experiment: Experiment) -> str:
    """Return the file of an experiment, in the authors' form."""
    rows = []
    for name, sentence in named_sentences(experiment):
        expected = -1
        if sentence.felicitous is not None:
            expected = int(sentence.felicitous)
        text = sentence.context + sentence.continuation
        rows.append({"id": name, "sent": text, "expected": expected})
    return json_lines(rows)


def tokens_of(text: str) -> list[str]:
    """Return the words of a text, each with the space before it, and its periods."""
    return re.findall(r" ?[\w']+|[.]", text)


def logprobs_of(tokens: Sequence[str]) -> list[float]:
    """Return a made-up log-probability for each token but the first, exact in binary."""
    return [-len(token) / 4 for token in tokens[1:]]


def write_run(clone: Path, experiment: Experiment, model: str) -> Path:
    """Write a run as the authors' repository has it."""
    folder = clone / "results" / experiment
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{experiment}_{model}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "sent", "expected", "tokens", "logprobs"])
        for name, sentence in named_sentences(experiment):
            text = sentence.context + sentence.continuation
            tokens = tokens_of(text)
            bars = "|".join(token.replace(" ", "Ġ") for token in tokens)
            writer.writerow([name, text, 0, bars, json.dumps(logprobs_of(tokens))])
    return path


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a clone with one model; our stimuli are declared as the benchmark's."""
    stimuli_files: dict[str, tuple[str, str]] = {}
    for experiment in EXPERIMENTS:
        stimuli_files[experiment] = (f"stimuli/{experiment}.jsonl", stimuli(experiment))
    sources = {
        "lieder": DeclaredSource("lieder/", stimuli_files),
        "lieder_recorded": DeclaredSource(
            "lieder/recorded/", {"base_tiny": ("base_tiny.responses.jsonl", "another run\n")}
        ),
    }
    declare(sources, tmp_path / "sources.yaml")
    write_copy(sources, tmp_path / "data")
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(tmp_path / "sources.yaml"))
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path / "data"))
    folder = tmp_path / "clone"
    for experiment in EXPERIMENTS:
        write_run(folder, experiment, "tiny")
        for computed in ("summed", "accuracy_ref", "accuracy_nonref"):
            (folder / f"results/{experiment}/{experiment}_tiny_{computed}.csv").write_text("id\n")
    return folder


def test_tokens_of_the_continuation_are_summed(clone: Path) -> None:
    """The sums are those of the second sentences, in the order of the stimuli."""
    converted = recordings.convert(clone)
    (system,) = converted.systems
    assert system.name == "tiny"
    expected = []
    for experiment in EXPERIMENTS:
        for _, sentence in named_sentences(experiment):
            expected.append(sum(-len(token) / 4 for token in tokens_of(sentence.continuation)))
    assert [row["response"] for row in system.rows] == [(logprob, False) for logprob in expected]
    assert [row["idx"] for row in system.rows] == [*range(12)] * 9
    assert converted.tasks == ["lieder_base", "lieder_diff", "lieder_two"]


def test_a_run_that_is_not_the_declared_one_is_named(clone: Path) -> None:
    """A remark says which runs have another checksum than the declared source."""
    remarks = recordings.convert(clone).remarks
    assert remarks == [
        "0 of 3 runs have a known checksum, and match it",
        "not as declared in lieder_recorded: base_tiny",
    ]


def test_the_declared_form_is_the_sums_byte_for_byte(real_data: Path) -> None:
    """The sums of a clone can be compared with the declared files by checksum."""
    assert recordings.convert(None).remarks == ["9 of 9 runs have a known checksum, and match it"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (",tokens,", ",words,", "no column 'tokens'"),
        ("Roland", "Ronald", "is not the stimulus"),
        ("[-", "[-1.5, -", "log-probabilities of"),
        ("[-", "[nothing ", "not a recorded sentence"),
        (',"[-', ",,-", "not as many cells"),
    ],
    ids=["column", "sentence", "number of tokens", "no number", "cells"],
)
def test_another_file_is_refused_in_one_line(clone: Path, old: str, new: str, problem: str) -> None:
    """The line names the file, and the row where there is one."""
    path = clone / "results/base/base_tiny.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=problem) as caught:
        recordings.convert(clone)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_run_that_ends_early_is_refused(clone: Path) -> None:
    """A file of too few rows is no run."""
    path = clone / "results/base/base_tiny.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(DataError, match=r"base_tiny.csv: 35 sentences are too few"):
        recordings.convert(clone)


def test_a_run_of_other_stimuli_is_left_out(clone: Path) -> None:
    """The other runs are converted, and a remark says which is not, and why."""
    path = write_run(clone, "base", "older")
    path.write_text(path.read_text().replace("Roland", "Ronald"))
    converted = recordings.convert(clone)
    assert [system.name for system in converted.systems] == ["tiny"]
    assert converted.remarks[-1].startswith(f"left out: {path}:2: Ronald")


def test_a_folder_that_is_no_clone_is_refused(clone: Path) -> None:
    """The line names the missing folder, and the repository to clone."""
    with pytest.raises(DataError, match="no folder results/base; name a clone of https://"):
        recordings.convert(clone / "results")


def test_one_command_makes_what_recorded_reads(
    real_data: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    """The command's model file gives the authors' accuracies of a model in all experiments."""
    printed = cli("data", "recorded", "lieder", "--output", "recorded").stdout
    assert "lm-eval-ext run --models recorded/models --tasks lieder_base,lieder_diff" in printed
    settings = yaml.safe_load((tmp_path / "recorded/models/gpt2.yaml").read_text())
    evaluate(
        tmp_path / "results",
        settings["model"],
        ["lieder_base", "lieder_diff", "lieder_two"],
        model_args=settings["model_args"],
    )
    results = load_results(tmp_path / "results")
    compared = 0
    for experiment in EXPERIMENTS:
        rows = results.rows(f"lieder_{experiment}")
        right = rows.groupby(["metric", "comparison"])["correct"].sum()
        for metric in metrics_of(experiment):
            file = real_data / f"lieder/recorded/{experiment}_gpt2.expected_{metric}.json"
            for name, figures in json.loads(file.read_text()).items():
                assert right[metric, name] == figures["correct"], name
                compared += 1
    assert compared == 101
