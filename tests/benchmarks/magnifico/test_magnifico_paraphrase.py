"""Paraphrases: right ones are kept, wrong ones refused, and what is kept is an exact pair."""

import csv
import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.api.model import LM
from lm_eval.api.registry import model_registry, register_model
from typer.testing import CliRunner

from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.benchmarks.magnifico.generate import lexicon, profile, to_sql, to_words
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer
from lm_eval_ext.benchmarks.magnifico.generate.make import meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.paraphrase.judge import (
    Asked,
    Judge,
    Refused,
    base_of,
)
from lm_eval_ext.benchmarks.magnifico.generate.parts import Impossible
from lm_eval_ext.benchmarks.magnifico.generate.tree import Aggregate, Compare, Plain, Question
from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import LmEvalExtError

CASES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("paraphrases.yaml").read_text(encoding="utf-8")
)
LONG = "What is the headline credit limit " + "of the customers " * 590 + "whose city is Lima?"


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the databases that the cases are about."""
    home = tmp_path_factory.mktemp("databases")
    for name in ("shop", "league"):
        (script,) = Path(__file__).parents[2].rglob(f"{name}.sql")
        with closing(sqlite3.connect(home / f"{name}.sqlite")) as connection:
            connection.executescript(script.read_text(encoding="utf-8"))
    return home


@pytest.fixture(scope="module")
def judges(databases: Path) -> dict[str, Judge]:
    return {
        name: Judge(profile.read(databases / f"{name}.sqlite", lexicon.Lexicon()))
        for name in ("shop", "league")
    }


def asked_of(judges: dict[str, Judge], case: dict[str, Any]) -> Asked:
    words = {name: tuple(pair) for name, pair in case["words"].items()}
    return judges[case["database"]].asked(case["question"], case["base"], words, case["query"])


def verdict(asked: Asked, text: str) -> str:
    try:
        base_of(asked, text)
    except Refused as reason:
        return str(reason)
    return "kept"


def test_right_paraphrases_are_kept_and_wrong_ones_refused(judges: dict[str, Judge]) -> None:
    right, strict, wrong = [], [], []
    for case in CASES:
        asked = asked_of(judges, case)
        right += [(text, verdict(asked, text)) for text in case.get("kept", ())]
        strict += [(text, verdict(asked, text)) for text in case.get("strict", ())]
        for reason, texts in case.get("refused", {}).items():
            wrong += [(text, verdict(asked, text), reason) for text in texts]
    assert [one for one in right if one[1] != "kept"] == []
    assert [one for one in strict if one[1] == "kept"] == []
    assert [one for one in wrong if one[1] != one[2]] == []
    # docs/generation.md states these.
    assert (len(right), len(strict), len(wrong)) == (133, 16, 102)


def test_what_is_too_long_is_refused(judges: dict[str, Judge]) -> None:
    (case,) = (one for one in CASES if one["question"].startswith("Find the headline credit"))
    assert len(LONG) > 10_000
    assert verdict(asked_of(judges, case), LONG) == "too long"


@pytest.mark.parametrize(
    ("paraphrase", "base"),
    [
        ("How many hefty products have a stock quantity greater than 72?",
         "How many products whose unit price is above 124 have a stock quantity greater than 72?"),
        ("For every city, count the customers whose credit limit is commendable.",
         "For every city, count the customers whose credit limit is above the overall average."),
        ("How many customers whose city is Kyoto are invisible in the sales order records?",
         "How many customers whose city is Kyoto do not appear in the sales order records?"),
        ("How much is the pooled weight of the hefty products?",
         "How much is the total weight of the products whose unit price is above 124?"),
    ],
    ids=["adjective", "predicate", "verb", "two-words"],
)  # fmt: skip
def test_the_base_question_differs_in_the_meaning_only(
    judges: dict[str, Judge], paraphrase: str, base: str
) -> None:
    (case,) = (one for one in CASES if paraphrase in one.get("kept", ()))
    assert base_of(asked_of(judges, case), paraphrase) == base


def near(question: Question) -> Iterator[Question]:  # noqa: PLR0912
    """Trees that ask something else with nearly the same words."""
    for at, one in enumerate(question.where):
        before, after = question.where[:at], question.where[at + 1 :]
        if one.kind:
            continue
        yield replace(question, where=(*before, *after))
        if isinstance(one, Compare) and one.operator != "LIKE":
            for operator in ("=", "<>", ">", "<", ">=", "<="):
                yield replace(question, where=(*before, replace(one, operator=operator), *after))
            for place, shown in enumerate(question.show):
                if isinstance(shown, Plain) and isinstance(one.term, Plain):
                    show = (*question.show[:place], one.term, *question.show[place + 1 :])
                    swapped = (*before, replace(one, term=shown), *after)
                    yield replace(question, show=show, where=swapped)
    for at, term in enumerate(question.show):
        if isinstance(term, Aggregate) and term.of and not term.kind:
            for function in ("MAX", "MIN", "AVG", "SUM"):
                yield replace(question, show=(replace(term, function=function),))
        elif isinstance(term, Plain):
            for field in question.entity.fields:
                show = (*question.show[:at], Plain(field), *question.show[at + 1 :])
                yield replace(question, show=show)
    if len(question.show) > 1:
        yield replace(question, show=question.show[1:])
        yield replace(question, show=question.show[::-1])
    if question.top and not question.top.kind:
        yield replace(question, top=replace(question.top, descending=not question.top.descending))
    yield replace(question, distinct=not question.distinct)
    if question.by and question.show and not question.top:
        yield replace(question, by=None)


def test_near_derivations_are_never_read_as_the_same(
    databases: Path, judges: dict[str, Judge]
) -> None:
    found = profile.read(databases / "shop.sqlite", lexicon.Lexicon())
    drawn = others = unread = 0
    queries: dict[Any, str] = {}
    for kind, meaning in meanings_of(found, 3):
        drawer, word = Drawer(found, random.Random(kind)), meaning.words["plausible"]
        for _ in range(2):
            try:
                question = drawer.question(meaning)
            except Impossible:
                continue
            query, novel = to_sql.query(question), to_words.question(question, {kind: word})
            base = to_words.question(question, {})
            try:
                asked = judges["shop"].asked(novel, base, {kind: (word, meaning.text)}, query)
            except Refused:
                unread += 1
                continue
            drawn += 1
            assert queries.setdefault((kind, asked.reading), query) == query, novel
            for other in near(question):
                text = to_words.question(other, {kind: word})
                if to_sql.query(other) != query and text != novel:
                    others += 1
                    assert verdict(asked, text) != "kept", (novel, text)
    assert drawn > max(40, 8 * unread)
    assert others > 250


# The whole way, with a folder as magnifico generate writes it, of the cases on the shop.

COLUMNS = [*own.REQUIRED, *own.OPTIONAL[1:]]
FOREIGN = "zaffoku"


SINGLE = [case for case in CASES if case["database"] == "shop" and len(case["words"]) == 1]


@pytest.fixture(scope="module")
def shop(databases: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("generated") / "shop", databases, SINGLE)


def written(folder: Path, databases: Path, cases: Sequence[dict[str, Any]]) -> Path:
    """A folder of these cases, in two forms where the word is one."""
    folder.mkdir()
    (folder / "shop.sqlite").write_bytes((databases / "shop.sqlite").read_bytes())
    rows = []
    for case in cases:
        ((name, (word, meaning)),) = case["words"].items()
        row = {"interpretation": name, "meaning": meaning, "base_question": case["base"],
               "query": case["query"], "form": "plausible", "word": word,
               "question": case["question"]}  # fmt: skip
        rows.append(row)
        if " " not in word:
            new = f"{FOREIGN}{name.replace('_', '')}"
            text = case["question"].replace(word, new)
            rows.append(row | {"form": "foreign", "word": new, "question": text})
    with (folder / "examples.tsv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
    digest = sha256((folder / "examples.tsv").read_bytes()).hexdigest()
    (folder / own.GENERATED).write_text(json.dumps({
        "grammar": 1, "seed": 7, "examples": digest, "lexicon": None,
        "database": {"name": "shop", "sha256": "0" * 64},
    }))  # fmt: skip
    (folder / own.SHIPPED).write_text("{}")
    return folder


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "examples.tsv").open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def answers() -> dict[str, str]:
    """The first right paraphrase of each question, with its foreign word; a wrong one of one."""
    found = {}
    for case in SINGLE:
        ((name, (word, _)),) = case["words"].items()
        new = word if " " in word else f"{FOREIGN}{name.replace('_', '')}"
        text = case["kept"][0] if case is not SINGLE[0] else "I cannot help with that."
        found[case["question"].replace(word, new)] = text.replace(word, new)
    return found


class Canned(LM):  # type: ignore[misc]
    """Gives the paraphrases above, and stops after so many."""

    most = 1000
    calls = 0

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def generate_until(self, requests: Sequence[Any]) -> list[str]:
        known, said = answers(), []
        for number, request in enumerate(requests):
            if number == type(self).most:
                raise KeyboardInterrupt
            text = known[request.args[0].rsplit("Question: ", 1)[1].partition("\n")[0]]
            type(self).calls += 1
            self.cache_hook.add_partial("generate_until", request.args, text)
            said.append(text)
        return said

    def loglikelihood(self, requests: Any) -> Any:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Canned]]:
    if "canned" not in model_registry:
        register_model("canned")(Canned)
    from lm_eval_ext.runs import model_files

    model_files.model_types.cache_clear()
    monkeypatch.setattr(Canned, "calls", 0)
    yield Canned
    model_files.model_types.cache_clear()


def paraphrased(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["magnifico", "paraphrase", *map(str, arguments)])


def test_a_folder_is_paraphrased_and_resumed(
    shop: Path, tmp_path: Path, canned: type[Canned], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {one.name: one.read_bytes() for one in shop.iterdir()}
    out = tmp_path / "new"
    monkeypatch.setattr(canned, "most", 9)
    assert paraphrased(shop, "-o", out, "--model", "canned").exit_code != 0
    assert not out.exists()
    monkeypatch.setattr(canned, "most", 1000)
    result = paraphrased(shop, "-o", out, "--model", "canned")
    assert result.exit_code == 0, result.output
    rows = rows_of(out)
    questions = {row["base_question"] for row in rows}
    assert canned.calls == len(questions)  # none is asked twice
    assert {one.name: one.read_bytes() for one in shop.iterdir()} == before
    assert [one.name for one in tmp_path.iterdir()] == ["new"]
    kept = {row["base_question"] for row in rows if row["paraphrased_by"] == "canned"}
    said = json.loads((out / own.GENERATED).read_text())["paraphrased"]
    assert (said["kept"], said["of"]) == (len(kept), len(questions))
    assert len(kept) == len(questions) - 1
    assert said["refused"] == {"the word is lost, changed or doubled": 1}
    assert f"{len(kept)} of {len(questions)} questions paraphrased by canned" in result.output
    for row, old in zip(rows, rows_of(shop), strict=True):
        changed = bool(row["paraphrased_by"])
        for name in ("question", "base_question"):
            assert (row[name] != old[name]) is changed
            assert row[f"original_{name}"] == (old[name] if changed else "")
        assert row["word"] in row["question"]
        assert row["query"] == old["query"]
    made = own.generated(out / "examples.tsv")
    assert made is not None
    assert made.endswith(f",paraphrased-{len(kept)}-of-{len(questions)},rules-1,by-canned")
    assert len(own.read(out / "examples.tsv", out / "shop.sqlite").examples) == len(
        own.read(shop / "examples.tsv", shop / "shop.sqlite").examples
    )
    assert "new/examples.tsv" in (out / "magnifico_generated_shop_paraphrased.yaml").read_text()
    again = paraphrased(out, "-o", tmp_path / "more", "--model", "canned")
    assert "already paraphrased" in str(again.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "NEW", "--model", "cannd"], "no model type 'cannd'; use one of"),
        (["-o", "NEW", "--model", "canned", "--batch_size", "x"], "batch_size must be a number"),
        (["-o", "NEW", "--model", "none.yaml"], "no file or folder none.yaml"),
        (["-o", "NEW", "--model", "canned", "--apply_chat_template"], "--apply_chat_template: To"),
        (["-o", "NEW", "--model", "hf", "--model_args", "pretrained=/none/such"], "hf: "),
        (["-o", ".", "--model", "canned"], "not an empty folder"),
    ],
    ids=["type", "batch-size", "file", "no-template", "no-model", "full-folder"],
)
def test_bad_input_is_one_line_and_leaves_nothing(  # noqa: PLR0917
    shop: Path, tmp_path: Path, canned: type[Canned], arguments: list[str], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    result = paraphrased(shop, *arguments)
    assert isinstance(result.exception, LmEvalExtError)
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_was_changed_is_refused(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "examples.tsv").write_bytes((shop / "examples.tsv").read_bytes() + b"\n")
    for content, said in ((None, "not a folder of magnifico generate"), ("{}", "changed since")):
        if content:
            (tmp_path / own.GENERATED).write_bytes((shop / own.GENERATED).read_bytes())
        result = paraphrased(tmp_path, "-o", tmp_path / "new", "--model", "dummy")
        assert said in str(result.exception)


@pytest.mark.slow
def test_a_real_model_is_asked(databases: Path, tmp_path: Path, tiny_models: Path) -> None:
    shop = written(tmp_path / "shop", databases, SINGLE[:2])
    settings = {"model": "hf", "model_args": f"pretrained={tiny_models / 'gpt2'}", "device": "cpu",
                "batch_size": 16}  # fmt: skip
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(settings))
    result = paraphrased(shop, "-o", tmp_path / "new", "--model", tmp_path / "tiny.yaml")
    assert result.exit_code == 0, (result.output, result.exception)
    lines = (tmp_path / "new" / "paraphrases.jsonl").read_text().splitlines()
    assert all(json.loads(line)["answer"] for line in lines)
    assert " questions paraphrased by tiny" in result.output
