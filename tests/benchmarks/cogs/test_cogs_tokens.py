"""Novel tokens in tokenizers: one token everywhere, text exact, nothing else changed."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from lm_eval_ext.benchmarks.cogs.tokenizer_files import (
    NOVEL_TOKENS,
    OLD_TEXTS,
    find_failure,
    find_novel_failure,
    ids_by_token,
    load_tokenizer,
    texts_of,
)
from support import families
from transformers import AutoTokenizer
from typer.testing import CliRunner

from lm_eval_ext.benchmarks.cogs import tokens as tokens_module
from lm_eval_ext.benchmarks.cogs.lexicons import TOKENS, replacements
from lm_eval_ext.benchmarks.cogs.tokens import Added, add_tokens, check_tokens
from lm_eval_ext.cli import cogs
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.recipe import NewTokenizer
from lm_eval_ext.training.starting import new_tokenizer

pytestmark = pytest.mark.slow

FAMILIES = tuple(families.WAY)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path, Added]]:
    """A family's model, the same with novel tokens, and what adding them reported."""
    folder = tmp_path_factory.mktemp("families")
    cache: dict[str, tuple[Path, Path, Added]] = {}

    def get(family: str) -> tuple[Path, Path, Added]:
        if family not in cache:
            source, out = folder / family, folder / f"{family}_novel"
            families.make(family, source)
            cache[family] = (source, out, add_tokens(source, out, init="average"))
        return cache[family]

    return get


@pytest.mark.parametrize("family", FAMILIES)
def test_the_way_is_found_and_every_token_has_one_id(made: Any, family: str) -> None:
    source, out, added = made(family)
    assert added.way == families.WAY[family]
    old, new = load_tokenizer(source), load_tokenizer(out)
    assert {
        token: {number} for token, number in zip(NOVEL_TOKENS, added.ids, strict=True)
    } == ids_by_token(new)
    assert not set(added.ids) & set(old.get_vocab().values())
    assert not set(added.ids) & set(new.all_special_ids)
    assert old.get_vocab().items() <= new.get_vocab().items()
    assert old.special_tokens_map == new.special_tokens_map
    assert old.all_special_ids == new.all_special_ids


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_that_is_saved_anew_has_the_tokens_still(
    made: Any, tmp_path: Path, family: str
) -> None:
    """Training scripts save the tokenizer beside the model, and some load it as slow."""
    _, out, added = made(family)
    load_tokenizer(out).save_pretrained(tmp_path)
    again = load_tokenizer(tmp_path)
    for tokenizer in (again, AutoTokenizer.from_pretrained(out, use_fast=False)):
        assert find_novel_failure(tokenizer) is None
        assert [min(ids) for ids in ids_by_token(tokenizer).values()] == list(added.ids)


NOTATION = ("x", "_", "(", ")", ",", ".", "*", ";", "AND", "LAMBDA", "7", "12", "nmod", "agent")
WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1, max_size=9)
TEXTS = st.lists(
    st.one_of(st.sampled_from(NOVEL_TOKENS), st.sampled_from(NOTATION), WORDS), min_size=1
).map(" ".join)


@pytest.mark.parametrize("family", FAMILIES)
def test_any_text_comes_back_exactly(made: Any, family: str) -> None:
    source, out, added = made(family)
    old, new = load_tokenizer(source), load_tokenizer(out)
    number_of = dict(zip(NOVEL_TOKENS, added.ids, strict=True))

    @settings(max_examples=150)
    @given(TEXTS)
    def check(text: str) -> None:
        ids = new.encode(text)
        assert new.decode(ids, skip_special_tokens=True) == text
        wanted = [number_of[word] for word in text.split() if word in number_of]
        assert [number for number in ids if number in added.ids] == wanted
        without = " ".join(word for word in text.split() if word not in number_of)
        assert new.encode(without) == old.encode(without)

    check()


@pytest.mark.parametrize("family", ["unigram", "byte_bpe"])
def test_lm_evals_hf_model_reads_and_writes_the_tokens(made: Any, family: str) -> None:
    from lm_eval.models.huggingface import HFLM

    _, out, added = made(family)
    model = HFLM(pretrained=str(out), device="cpu", batch_size=1)
    text = "[w_3] saw [w_20] * [w_0] ( x _ 1 , [w_7] ) . [w_7] [w_8]"
    ids = model.tok_encode(text)
    assert [added.ids.index(number) for number in ids if number in added.ids] == [3, 20, 0, 7, 7, 8]
    assert model.tok_decode(ids) == text


def test_real_texts_come_back_exactly_under_every_lexicon(made: Any, real_data: Path) -> None:
    """A sentence's first space, which the authors put before a novel token, is another matter.

    T5's kind does not see it. Llama's sees it, and takes the first space away in decoding, which
    nobody asks of a prompt. Answers have none.
    """
    lines = (real_data / "cogs" / "gen.pre-2022-09.tsv").read_text().splitlines(keepends=True)
    part = made("unigram")[1].parent / "part.tsv"
    part.write_text("".join(lines[::80]), encoding="utf-8")
    texts = list(texts_of(part))
    assert len(texts) == len(set(texts)) > 4 * len(lines[::80])
    seen = {word for text in texts for word in text.split()}
    for lexicon in ("tokens", "cvcv_short", "cvcv_long", "random_short", "random_long"):
        assert seen >= set(replacements(lexicon).values()), lexicon
    first = [text for text in texts if text.split()[0] in NOVEL_TOKENS]
    spaced = [f" {text}" for text in first]
    for family in ("unigram", "byte_bpe", "llama", "llama_legacy"):
        _, out, added = made(family)
        assert check_tokens(out, part) == added.texts + len(texts)
        tokenizer = load_tokenizer(out)
        ids = tokenizer(spaced)["input_ids"]
        assert (ids == tokenizer(first)["input_ids"]) is (family == "unigram")
        back = tokenizer.batch_decode(ids, skip_special_tokens=True)
        assert back == (first if family in ("unigram", "llama") else spaced)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_tokenizers_of_recipes_keep_real_texts_after_saving(
    kind: Any, real_data: Path, tmp_path: Path
) -> None:
    part = tmp_path / "part.tsv"
    lines = (real_data / "cogs" / "gen.pre-2022-09.tsv").read_text().splitlines(keepends=True)
    part.write_text("".join(lines[::200]), encoding="utf-8")
    texts = list(texts_of(part))
    wanted = NewTokenizer(kind=kind, size=600)
    new_tokenizer(wanted, texts, encoder_decoder=kind == "unigram").save_pretrained(tmp_path / "t")
    tokenizer = load_tokenizer(tmp_path / "t")
    back = tokenizer.batch_decode(tokenizer(texts)["input_ids"], skip_special_tokens=True)
    assert back == texts
    unknown = "Ein Tütchen"
    ids = tokenizer(unknown, add_special_tokens=False)["input_ids"]
    assert (tokenizer.decode(ids, skip_special_tokens=True) == unknown) is (kind != "unigram")


def _failure_with(added: Iterable[dict[str, Any]], source: Path, target: Path) -> str | None:
    """What the check says about a tokenizer that somebody put tokens into by hand."""
    shutil.copytree(source, target)
    file = target / "tokenizer.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["added_tokens"] += added
    file.write_text(json.dumps(document), encoding="utf-8")
    return find_novel_failure(load_tokenizer(target))


def _added(pattern: str, first: int, **flags: bool) -> list[dict[str, Any]]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return [
        {"id": first + place, "content": pattern.format(token), **plain, **flags}
        for place, token in enumerate(NOVEL_TOKENS)
    ]


def test_the_check_finds_the_traps_of_appendix_b(made: Any, tmp_path: Path) -> None:
    source = made("unigram")[0]
    first = len(load_tokenizer(source))
    bare, spaced = _added("{}", first), _added(" {}", first)
    assert "A farmer saw[w_0] ." in str(_failure_with(bare, source, tmp_path / "bare"))
    assert "'[w_0]' is encoded as" in str(_failure_with(spaced, source, tmp_path / "spaced"))
    # With both, space first, the authors' first remedy: the check allows two ids for a token.
    both = (*spaced, *_added("{}", first + len(NOVEL_TOKENS)))
    assert _failure_with(both, source, tmp_path / "both") is None
    nothing = str(_failure_with((), source, tmp_path / "nothing"))
    assert "[w_0] is not in the vocabulary (21 of 21 are missing)" in nothing


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("lstrip", "A farmer saw[w_0] ."),
        ("rstrip", "[w_0]saw the parcel ."),
        ("special", "special token, which lm-eval leaves out"),
    ],
)
def test_the_check_finds_wrong_flags(made: Any, tmp_path: Path, flag: str, message: str) -> None:
    source = made("byte_bpe")[0]
    added = _added("{}", len(load_tokenizer(source)), **{flag: True})
    assert message in str(_failure_with(added, source, tmp_path / "model"))


def test_clean_up_is_switched_off_where_it_removes_spaces(made: Any, tmp_path: Path) -> None:
    shutil.copytree(made("unigram")[0], tmp_path / "model")
    file = tmp_path / "model" / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(config | {"clean_up_tokenization_spaces": True}), encoding="utf-8")
    assert "the parcel" in str(find_failure(load_tokenizer(tmp_path / "model"), ["the parcel ."]))
    added = add_tokens(tmp_path / "model", tmp_path / "out", init="random")
    assert [note for note in added.notes if "clean_up_tokenization_spaces" in note]
    new = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert new == config | {"clean_up_tokenization_spaces": False}


def test_lists_of_added_tokens_in_the_style_of_transformers_4_are_kept_up(
    made: Any, tmp_path: Path
) -> None:
    shutil.copytree(made("byte_bpe")[0], tmp_path / "model")
    file = tmp_path / "model" / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    end = {"content": "<|endoftext|>", "normalized": False, "special": True}
    old = config | {"added_tokens_decoder": {"0": end}}
    file.write_text(json.dumps(old), encoding="utf-8")
    (tmp_path / "model" / "added_tokens.json").write_text("{}", encoding="utf-8")
    added = add_tokens(tmp_path / "model", tmp_path / "out", init="random")
    new = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text(encoding="utf-8"))
    listed = new["added_tokens_decoder"]
    assert [listed[str(number)]["content"] for number in added.ids] == list(NOVEL_TOKENS)
    assert listed["0"] == end
    legacy = json.loads((tmp_path / "out" / "added_tokens.json").read_text(encoding="utf-8"))
    assert list(legacy.items()) == list(zip(NOVEL_TOKENS, added.ids, strict=True))


def test_a_tokenizer_that_loses_text_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    families.make("wordpiece_uncased", tmp_path / "model")
    with pytest.raises(OptionError, match=r"does not keep COGS's text: 'The farmer.*'the farmer"):
        add_tokens(tmp_path / "model", tmp_path / "out", init="random")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_tokens_are_not_added_twice(made: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"has \[w_0\] already"):
        add_tokens(made("llama")[1], tmp_path / "out", init="random")


def test_a_name_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    for call in (check_tokens, lambda model: add_tokens(model, tmp_path / "out", init="random")):
        with pytest.raises(OptionError, match=r"t5-base is not a folder.*not downloaded"):
            call(Path("t5-base"))
    with pytest.raises(OptionError, match="no tokenizer can be loaded"):
        check_tokens(tmp_path)


def test_a_file_for_the_check_must_be_cogss(made: Any, tmp_path: Path) -> None:
    out = made("byte_bpe")[1]
    with pytest.raises(DataError, match="cannot be read"):
        check_tokens(out, tmp_path / "absent.tsv")
    (tmp_path / "words.txt").write_text("one\tform\nword\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2 has one column"):
        check_tokens(out, tmp_path / "words.txt")
    (tmp_path / "lossy.tsv").write_text("Lina  saw a cobra .\tA\u0301\ttype\n", encoding="utf-8")
    words = replacements(TOKENS)
    texts = list(texts_of(tmp_path / "lossy.tsv"))
    assert {f"{words['Lina']} saw a {words['cobra']} .", "Lina saw a cobra ."} < set(texts)
    assert len(texts) == 7, "six lexicons, and a form without a key word"
    with pytest.raises(OptionError, match="is decoded as"):
        check_tokens(made("wordpiece")[1], tmp_path / "lossy.tsv")


def test_the_commands(made: Any, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command("add-tokens")(cogs.add_tokens)
    app.command("check-tokens")(cogs.check_tokens)
    source, out = str(made("unigram")[0]), str(tmp_path / "out")
    arguments = ["--model", source, "--init", "unused", "--out", out]
    result = CliRunner().invoke(app, ["add-tokens", *arguments], catch_exceptions=False)
    assert "[w_0] to [w_20] have the ids 102 to 122; unused embeddings" in result.output
    assert f"{len(OLD_TEXTS) + 210} texts came back exactly" in result.output
    result = CliRunner().invoke(app, ["check-tokens", "--model", out], catch_exceptions=False)
    assert "each novel token is one token" in result.output


@pytest.mark.parametrize("error", [KeyboardInterrupt, OptionError])
def test_an_interruption_leaves_nothing(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr(tokens_module, "write_weights", stop)
    with pytest.raises(error):
        add_tokens(made("byte_bpe")[0], tmp_path / "new" / "out", init="random")
    assert not list((tmp_path / "new").iterdir())
