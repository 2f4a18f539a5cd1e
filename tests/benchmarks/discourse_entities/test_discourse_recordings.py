"""Recordings of discourse entities: downloaded and converted, with sentences of our own."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from support.recordings import REVISION, DeclaredSource, declare, json_lines
from support.web import listening

from lm_eval_ext.benchmarks.discourse_entities import load, recordings
from lm_eval_ext.errors import DataError

SINGLE_TYPES = sorted(set(itertools.chain(*load.SINGLE.values())))
PAIR_TYPES = sorted(set(itertools.chain(*load.PAIRS.values())))
ITEM = {
    "item": "15_kite",
    "nouns": ["a kite", "an owl"],
    "contexts": {name: f"Wen has {name} {{0}} and {{1}}." for name in PAIR_TYPES},
    "ref": "The {} is here.",
    "nonref": "The {} that she wanted is gone.",
}


def stimuli() -> dict[str, tuple[str, str]]:
    """Return the files of both experiments: one item."""
    single_rows = []
    for context_type in SINGLE_TYPES:
        sentence = f"Wen {context_type} a kite."
        single_rows.append(
            {
                "id": f"15_kite_{context_type}",
                "type": context_type,
                "i_sentence": f"{sentence} It flies.",
                "s_sentence": f"{sentence} It's late.",
            }
        )
    return {
        "single": ("single.jsonl", json_lines(single_rows)),
        "pairs": ("pairs.jsonl", json_lines(list(load.written([ITEM])))),
    }


def recorded_single() -> str:
    """Return a file of the first experiment, with a log-probability for each continuation."""
    lines = ["id,sentence,pronoun,continuation_log_prob"]
    for number, context_type in enumerate(SINGLE_TYPES):
        for pronoun, logprob in (("it", -number), ("subj", -10)):
            lines.append(f"15_kite_{context_type},A sentence,{pronoun},{logprob}")
    return "\n".join(lines) + "\n"


def recorded_pairs() -> str:
    """Return a file in which what is labelled as expected is always more probable."""
    lines = ["id,sentence,expected,order,continuation_log_prob"]
    for row in load.written([ITEM]):
        lines.append(f"{row['id']},A sentence,1,{row['order']},-1.5")
        lines.append(f"{row['id']},A sentence,0,{row['order']},-2.5")
    return "\n".join(lines) + "\n"


UPSTREAM = {
    "single_tiny": "full_sentence_hand_written_stimuli.tiny.processed.csv",
    "pairs_tiny": "2nouns_full_sentence_hand_written_stimuli.tiny.processed.csv",
}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Declare stimuli and recordings that a server on 127.0.0.1 has; the cache is empty."""
    recorded = {
        "single_tiny": ("single.tiny.csv", recorded_single()),
        "pairs_tiny": ("pairs.tiny.csv", recorded_pairs()),
    }
    contents = {}
    for name, (_, text) in recorded.items():
        contents[f"/{REVISION}/{UPSTREAM[name]}"] = text
    for path, text in stimuli().values():
        contents[f"/{REVISION}/{path}"] = text

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = contents[self.path].encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "LM_EVAL_EXT_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "cache"))
    with listening(Handler) as url:
        address = f"{url}/{{revision}}/"
        sources = {
            "discourse_entities": DeclaredSource("stimuli/", stimuli(), address),
            "discourse_entities_recorded": DeclaredSource("recorded/", recorded, address, UPSTREAM),
        }
        declare(sources, tmp_path / "sources.yaml")
        monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(tmp_path / "sources.yaml"))
        yield


def responses_of(rows: Sequence[Mapping[str, Any]], document: str) -> list[float]:
    """Return the log-probabilities of a document's requests, in their order."""
    numbered = {}
    for row in rows:
        if row["doc"]["id"] == document:
            numbered[row["idx"]] = row["response"][0]
    return [numbered[index] for index in range(len(numbered))]


@pytest.mark.usefixtures("served")
def test_recordings_are_downloaded_and_converted(tmp_path: Path) -> None:
    """Files have other names upstream; responses stand in the order of the requests."""
    systems = {system.name: system.rows for system in recordings.convert(None).systems}
    assert list(systems) == ["tiny", "tiny-item15-exchanged"]
    assert (tmp_path / "cache/data/recorded/single.tiny.csv").read_text() == recorded_single()
    know, doubt = SINGLE_TYPES.index("know"), SINGLE_TYPES.index("doubt")
    expected = [-know, -10, -doubt, -10]
    assert responses_of(systems["tiny"], "15_kite/know_doubt") == expected
    pairs = "15_kite/know_doubt/coref"
    assert responses_of(systems["tiny"], pairs) == [-1.5, -2.5] * 4
    assert len(systems["tiny"]) == 4 * 4 + 8 * 8


@pytest.mark.usefixtures("served")
def test_labels_of_item_15_are_exchanged_with_two_nouns_only() -> None:
    """The older stimuli had them the other way round; the first experiment had not."""
    recorded, exchanged = (system.rows for system in recordings.convert(None).systems)
    single, pairs = "15_kite/know_doubt", "15_kite/know_doubt/noncoref"
    assert responses_of(exchanged, single) == responses_of(recorded, single)
    assert responses_of(exchanged, pairs) == [-2.5, -1.5] * 4


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,order\n", "no column 'continuation_log_prob'"),
        (recorded_pairs().replace("-1.5", "low", 1), "csv:2: continuation_log_prob is no number"),
        (recorded_pairs().replace(",1,-1.5", ",1", 1), "csv:2: not as many cells"),
        (
            recorded_pairs().replace(",1,1,-1.5\n", ",0,1,-1.5\n", 1),
            "has this continuation already",
        ),
        ("".join(recorded_pairs().splitlines(True)[:-2]), "no continuation 2 of 15_kite_"),
    ],
    ids=["column", "no number", "short row", "twice", "missing"],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    """The line names the row, or what is missing."""
    clone = tmp_path / "clone"
    (clone / "results").mkdir(parents=True)
    (clone / "results" / UPSTREAM["single_tiny"]).write_text(recorded_single())
    (clone / "results" / UPSTREAM["pairs_tiny"]).write_text(text)
    with pytest.raises(DataError, match=problem) as caught:
        recordings.convert(clone)
    assert str(caught.value).isprintable()


@pytest.mark.usefixtures("served")
def test_a_clone_without_both_experiments_is_refused(tmp_path: Path) -> None:
    """A folder without the authors' files, and a model with one of two."""
    folder = tmp_path / "clone/results"
    folder.mkdir(parents=True)
    with pytest.raises(DataError, match=r"no full_sentence_hand_written_stimuli.MODEL"):
        recordings.convert(tmp_path / "clone")
    (folder / UPSTREAM["single_tiny"]).write_text(recorded_single())
    with pytest.raises(DataError, match="tiny: only one of single and pairs was recorded"):
        recordings.convert(tmp_path / "clone")
