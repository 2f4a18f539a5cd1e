"""The measurements of ``make bench``: their arithmetic, their page, and that they run."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import __main__ as bench  # noqa: E402
from bench import real  # noqa: E402
from bench.data import UnavailableError  # noqa: E402
from bench.models import Answer, ModelRequest, same, server_commands  # noqa: E402
from bench.rows import Row, in_turn, render, table  # noqa: E402


def test_a_row_is_the_median_of_ratios_not_a_ratio_of_medians() -> None:
    """The range of ratios stands behind it."""
    text = table([Row("work", 10, "hf", [2.0, 9.0, 4.0], [1.0, 3.0, 4.0])])
    assert text.splitlines()[0].count("|") == 8  # no limit, no memory
    assert "| 2.50 and 3.33 | **2** (1 to 3) |" in text


@pytest.mark.parametrize(
    ("theirs", "ours", "equal"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["a", "c"], False),
        ([(-1.0, True)], [(-1.00009, True)], True),
        ([(-1.0, True)], [(-1.0002, True)], False),
        ([(-1.0, True)], [(-1.0, False)], False),
    ],
    ids=["equal texts", "another text", "within noise", "beyond noise", "another flag"],
)
def test_answers_that_differ_are_seen(
    theirs: Sequence[Answer], ours: Sequence[Answer], equal: bool
) -> None:
    """Texts must be equal; log-probabilities may differ by noise."""
    assert same(theirs, ours) is equal


def test_the_start_is_a_column_of_its_own() -> None:
    row = Row("work", 10, "hf", [2.0], [1.0], start=[12.34, 5.0])
    header, _, line = table([row]).splitlines()
    assert header.endswith("| start, seconds (both) |")
    assert line.endswith("| **2** (2 to 2) | 12.3 and 5 |")


def test_real_models_are_skipped_if_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MODELS", raising=False)
    with pytest.raises(UnavailableError, match="BENCH_MODELS"):
        next(real.rows(1, 1.0))


def test_a_first_request_shares_nothing_with_the_measured_ones() -> None:
    """A server remembers prompts, so what it is started with must not help it."""
    requests = [ModelRequest("generate_until", (f"SELECT {n}", {"until": []})) for n in range(3)]
    warm_up = real._warm_up(requests)
    assert [request.text for request in warm_up] == ["Hello. SELECT 0", "Hello. SELECT 1"]


@pytest.mark.parametrize(
    ("text", "expected"), [("a; b # c", "a"), ("a # b; c", "a "), ("abc", "abc")]
)
def test_texts_without_stop_strings_are_cut_at_the_first(text: str, expected: str) -> None:
    assert real._cut(text, [";", "#"]) == expected


def test_servers_are_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_SERVERS", "A, f32: serve --port {port}\nB: sh -c 'x: y'\n")
    assert server_commands() == [("A, f32", " serve --port {port}"), ("B", " sh -c 'x: y'")]


def test_both_ways_take_turns_in_going_first() -> None:
    """Three rounds of both are six calls."""
    calls: list[str] = []
    measured = in_turn(3, lambda: calls.append("theirs"), lambda: calls.append("ours"))
    assert calls == ["theirs", "ours", "ours", "theirs", "theirs", "ours"]
    assert len(measured.theirs) == 3
    assert len(measured.ours) == 3


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ("2026-11-30, 2 rounds: a processor", [("other", [9.0]), ("work", [3.0]), ("new", [4.0])]),
        ("2026-11-29, 2 rounds: another one", [("work", [3.0]), ("new", [4.0])]),
    ],
    ids=["the same machine, another day", "another machine"],
)
def test_rows_of_real_models_are_kept_one_by_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    about: str,
    expected: list[tuple[str, list[float]]],
) -> None:
    """A comparison that is measured again is replaced; times of two machines are never mixed."""
    monkeypatch.setattr(bench, "LAST", tmp_path / "last.json")
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    bench.LAST.write_text('{"sql": {"about": "", "rows": []}}')
    bench.PAGE.write_text(f"before {bench.BEGIN} {bench.END} after")
    before = [Row("other", 1, "hf", [9.0], [1.0]), Row("work", 1, "hf", [2.0], [1.0])]
    bench.keep_rows("2026-11-29, 2 rounds: a processor", before)
    bench.keep_rows(
        about, [Row("work", 1, "hf", [3.0], [1.0]), Row("new", 1, "vLLM", [4.0], [1.0])]
    )
    record = json.loads(bench.LAST.read_text())
    assert list(record) == ["real", "sql"]
    assert [(row["work"], row["theirs"]) for row in record["real"]["rows"]] == expected
    assert "| work |" in bench.PAGE.read_text()


def test_the_page_shows_the_last_results() -> None:
    """All rows were measured in several rounds, both ways equally often."""
    record = json.loads(bench.LAST.read_text(encoding="utf-8"))
    text = bench.PAGE.read_text(encoding="utf-8")
    inside = text.partition(bench.BEGIN)[2].partition(bench.END)[0]
    assert inside.strip() == render(record).strip()
    assert list(record) == [topic for topic in bench.PARTS if topic in record]
    for topic, results in record.items():
        for row in results["rows"]:
            assert len(row["ours"]) > 1, (topic, row["work"])
            assert len(row["theirs"]) in {0, len(row["ours"])}, (topic, row["work"])
