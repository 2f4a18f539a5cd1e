"""LaTeX for papers: what is bold, what is escaped, and that it compiles."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from support.tex import compiled

from lm_eval_ext.cards import cards, readable
from lm_eval_ext.compare.latex import Cell, Paper, by_task, escape, of_all_tasks, render
from lm_eval_ext.compare.report import Pair, Report, Settings, Table
from lm_eval_ext.stats.intervals import Interval
from lm_eval_ext.stats.paired import Difference

HOSTILE = "a_b%&#${}~^\\[x]*<|>\"'`--?` é\u202e\x1b[31m\n\\input{/etc/passwd}"


def table(
    metric: str,
    values: dict[str, float | None],
    groups: str,
    task: str = "lieder_base",
    **more: object,
) -> Table:
    difference = Difference(0.1, 0.02, 0.05, 0.15, "t", 0.0002, "sign-flip")
    first, second, *_ = values
    return Table(
        task, metric, 48, 16, "item", values, dict(zip(values, groups.split(), strict=True)),
        [Pair(first, second, difference, 0.0004)],
        intervals={
            name: None if value is None else Interval(value - 0.05, value + 0.05, "wilson")
            for name, value in values.items()
        },
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def report(*tables: Table) -> Report:
    return Report(tables, [], {"lieder_base": "task:lieder_base|version:1.1"}, Settings())


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each row, by its name."""
    lines = (line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if " & " in line)
    return {name: cells for name, *cells in lines}


def test_bold_are_the_best_and_what_is_tied_with_it() -> None:
    values: dict[str, float | None] = {"a": 0.9, "b": 0.85, "c": 0.7, "d": None}
    found = rows(
        by_task(
            report(
                table("direct/mean", values, "a ab b b", published={"humans": 0.94}),
                table("direct/mean", {"c": 0.5, "a": 0.5, "b": 0.4, "d": 0.1}, "a a b b"),
            )
        )
    )
    bold = {name: [place for place, cell in enumerate(cells[::2]) if "textbf" in cell]
            for name, cells in found.items()}  # fmt: skip
    assert bold == {"": [], "a": [0, 1], "b": [0], "c": [1], "d": [], "humans": []}
    assert found["a"][:2] == [r"\textbf{0.900}", r"{\scriptsize {[}0.850, 0.950{]}}"]
    assert found["d"][:2] == ["N/A", ""] and found["humans"] == ["0.940", "", "", ""]


def test_without_tests_nothing_is_bold() -> None:
    one = Table("lieder_base", "direct/mean", 3, 1, "item", {"a": 0.9, "b": 0.1}, {}, [], "few")
    text = by_task(report(one))
    assert "textbf" not in text and "Bold" not in text and "Brackets" not in text


def test_two_systems_have_a_difference_and_p() -> None:
    found = rows(by_task(report(table("direct/mean", {"a": 0.9, "b": 0.8}, "a b"))))
    assert found["a less b"] == ["$+$0.100", r"{\scriptsize {[}$+$0.050, $+$0.150{]}}"]
    assert found["p"] == [r"\textless{}0.001", ""]


def test_caption_label_names_and_signature() -> None:
    text = by_task(report(table("direct/uniqueness+novelty", {"a": 0.9, "b": 0.8}, "a b")))
    assert r"\label{tab:lieder-base}" in text
    assert r"\caption{lieder\_base: 48 documents, 16 items. Brackets: 95 \% intervals" in text
    assert "sign-flip" in text and r"\shortstack{Uniqueness + \\ novelty (direct)}" in text
    assert text.startswith("% ") and "\n% task:lieder_base|version:1.1\n" in text


def test_one_table_of_all_tasks() -> None:
    base = table("direct/mean", {"a": 0.9, "b": 0.8}, "a b")
    sql = table("populated/relative_performance", {"b": 80.5, "c": 79.0}, "a a", "magnifico_desc",
                percent=True)  # fmt: skip
    text = of_all_tasks(report(base, sql))
    found = rows(text)
    assert found["a"] == [r"\textbf{0.900}", found["a"][1], "", ""]
    assert found["b"][2] == r"\textbf{80.5}" and found["c"][2] == r"\textbf{79.0}"
    assert r"\multicolumn{2}{c}{lieder\_base} & \multicolumn{2}{c}{magnifico\_desc}" in text
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}" in text
    assert f"Documents: lieder\\_base {base.documents}, magnifico\\_desc {sql.documents}." in text


def test_names_for_readers() -> None:
    for task, metric, name in (
        ("lieder_base", "direct/mean", "Mean (direct)"),
        ("lieder_base", "direct/mean:know_doubt", "Mean (direct), know doubt"),
        ("lieder_base", "direct/pos_neg_s>pos_pos_s", "pos_neg_s > pos_pos_s (direct)"),
        ("magnifico_desc", "populated/relative_performance:foreign",
         "Relative performance, foreign (populated)"),
        ("cogs_mini_gen", "exact_match/all", "Exact match"),
        ("conceptual_glue", "gain/rouge_l", "ROUGE-L (gain)"),
        ("diner_mini_name", "micro_f1", "Micro F1"),
        ("hellaswag", "acc_norm,none", "Acc norm,none"),
    ):  # fmt: skip
        assert readable(task, metric) == name
    for card in cards().values():
        for task in card.tasks:
            assert all(readable(task, metric) for metric in (*card.headlines, *card.summary))


@given(st.text(max_size=30))
def test_no_text_is_a_command(text: str) -> None:
    shown = escape(text)
    assert "\n" not in shown
    bare = re.sub(r"\\(?:text[a-z]+\{\}|[&%$#_{}])", "", shown)
    assert "\\" not in bare and not set("&%$#_~^|<>") & set(bare)
    assert bare.count("{") == bare.count("}")


def test_hostile_names_compile(tmp_path: Path) -> None:
    cells = [Cell("0.900", "[0.850, 0.950]", bold=True), Cell("-80.5", ""), Cell()]
    columns = [(HOSTILE, HOSTILE), (HOSTILE, "b"), ("c", "c" * 60)]
    made = Paper(HOSTILE, HOSTILE, columns, [[(HOSTILE, cells)], [("[1]", cells)]], [HOSTILE])
    compiled(render(made), tmp_path)
