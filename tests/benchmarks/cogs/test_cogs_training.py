"""COGS's material for training; novel tokens: one token everywhere, text and old ones exact."""

import functools
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from support import families
from support.tasks import load_task
from tokenizers import AddedToken

from lm_eval_ext.benchmarks.cogs import mini, tokens, training
from lm_eval_ext.benchmarks.cogs.lexicons import replacements
from lm_eval_ext.benchmarks.cogs.load import Words
from lm_eval_ext.benchmarks.cogs.tokens import (
    NOISE,
    NOTATION,
    NOVEL_TOKENS,
    OLD_TEXTS,
    add_tokens,
    failure,
)
from lm_eval_ext.benchmarks.cogs.training import sentences
from lm_eval_ext.errors import OptionError
from lm_eval_ext.training import command
from lm_eval_ext.training.recipe import prepare as of_source
from lm_eval_ext.training.starting import load

prepare = functools.partial(of_source, training.__name__)


def test_the_gates_are_the_exposure_examples_and_the_development_set() -> None:
    made = prepare({"corpus": "mini", "lexicon": "tokens", "separator": " ="}, 0)
    exposed = made.gates["exposure"]
    assert len(exposed) == 7, "six constructions and a primitive"
    assert set(exposed) == {pair for pair in made.train if "[w_" in pair[1]}
    assert [len(made.train), len(made.gates["dev"])] == [2029, 200]
    assert made.model_file == {"metadata": {"cogs_separator": " =", "cogs_lexicon": "tokens"}}
    assert [made.score(one, "f ( x )") for one in (" f (  x ) ", "f ( y )")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("corpus", "data", "asked"),
    [
        ("cogs", {"lexicon": "fresh", "seed": 0, "shape": "random_short"}, "cogs_fresh_gen_small"),
        ("cogs", {"lexicon": "fresh", "fresh": 0, "shape": "cvcv_short"}, "cogs_fresh_gen_small"),
        ("mini", {"lexicon": "fresh", "seed": 0, "shape": "random_short"}, "cogs_mini_fresh_gen"),
        ("mini", {"lexicon": "fresh", "fresh": 0, "shape": "cvcv_short"}, "cogs_mini_fresh_gen"),
        ("cogs", {"lexicon": "cvcv_short"}, "cogs_cvcv_short_gen_small"),
        ("mini", {"lexicon": "cvcv_short"}, "cogs_mini_gen"),
    ],
)
def test_the_tasks_ask_the_words_that_were_trained(
    corpus: str, data: dict[str, Any], asked: str, request: pytest.FixtureRequest
) -> None:
    """The model file has all that the words depend on, a seed of 0 too."""
    if corpus == "cogs":
        request.getfixturevalue("real_data")
    wanted = set(Words(corpus=corpus, **data).words().values())
    made = prepare({"corpus": corpus, **data}, 0)

    def words(**metadata: Any) -> set[str]:
        task = load_task(asked, **metadata)
        return {word for doc in task.test_docs() for word in task.doc_to_target(doc).split()}

    trained = wanted & {word for _, form in made.gates["exposure"] for word in form.split()}
    assert len(trained) > 3
    assert trained <= words(**made.model_file.get("metadata", {}))
    if "shape" in data:
        assert not wanted & words(), "those of the task's own seed"


def test_exposure_is_the_authors(real_data: Path) -> None:
    lines = (real_data / "cogs" / "train_exposure_examples.tsv").read_text().splitlines()
    made = prepare({}, 0)
    assert sorted(made.gates["exposure"]) == sorted(tuple(one.split("\t")[:2]) for one in lines)
    assert [len(made.train), len(made.facts["cogs/train"])] == [24_155, 64]


def test_generated_text_has_key_words_in_all_positions_and_nothing_that_is_asked() -> None:
    made = list(sentences(2000, 1))
    every = {one.sentence for split in mini.ALL_SPLITS for one in mini.examples(split)}
    assert every.isdisjoint(made)
    assert made != list(sentences(2000, 2))
    walrus = [one for one in made if "walrus" in one.split()]
    subjects = [one for one in walrus if one.split()[1] == "walrus"]
    assert 0.1 < len(subjects) / len(walrus) < 0.9
    known, words = ({word for one in some for word in one.split()} for some in (every, made))
    assert {"tickled", "polished"} <= words <= known
    # Made-up words stand for common ones.
    rare = [word for one in sentences(300, 1, rare=0.5) for word in one.split()]
    new = [word for word in rare if word not in known]
    assert 100 < len(new) < 180
    assert all(7 <= len(word) <= 14 for word in new)
    assert set(replacements("cvcv_short").values()).isdisjoint(new)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"lexcion": "tokens"}, "did you mean lexicon"),
        ({"lexicon": "cvcv_short", "embeddings": "random"}, "for the lexicon tokens"),
        ({"sentences": 10}, "corpus mini"),
    ],
)
def test_options_that_do_not_fit_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        prepare(data, 0)


def test_a_recipe_adds_novel_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there after training, saving and loading."""
    families.make("unigram", tmp_path / "model")
    few = [one for one in mini.examples("train") if one.type == "primitive"]
    monkeypatch.setattr(training.load, "examples", lambda *_: (few, []))
    settings = {
        "data": {"corpus": "mini", "prefix": "", "embeddings": "average"},
        "model.start": str(tmp_path / "model"),
        "training": {"max_steps": 1, "eval_steps": 1}, "gates": {},
    }  # fmt: skip
    (trained,) = command.train("cogs_t5_base_tokens", tmp_path / "out", settings=settings)
    assert failure(load(trained.folder)[1]) == ""
    assert trained.model_file is not None
    assert "display_name: COGS tokens, T5-base fine-tuned, av" in trained.model_file.read_text()


pytestmark = pytest.mark.slow

TIED = ("byte_bpe", "unigram", "llama_legacy")
FAMILIES = (*TIED, "byte_bpe_files", "unigram_behind", "llama", "llama_first")


def tokenizer_of(folder: Path) -> Any:
    return tokens._tokenizer(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A family's model, and the same with novel tokens."""
    folder = tmp_path_factory.mktemp("families")

    @functools.cache
    def get(family: str) -> tuple[Path, Path]:
        source, out = folder / family, folder / f"{family}_novel"
        families.make(family, source)
        add_tokens(source, out, init="average")
        return source, out

    return get


WORDS = st.sampled_from(sorted({*" ".join(OLD_TEXTS).split()}))
LETTERS = st.text(string.ascii_letters, min_size=1, max_size=9)
TEXTS = st.lists(st.sampled_from(NOVEL_TOKENS) | WORDS | LETTERS, min_size=1).map(" ".join)


@pytest.mark.parametrize("family", FAMILIES)
def test_any_text_comes_back_and_old_tokens_keep_their_ids(
    made: Any, family: str, tmp_path: Path
) -> None:
    source, out = made(family)
    old, new = tokenizer_of(source), tokenizer_of(out)
    assert old.get_vocab().items() <= new.get_vocab().items()
    assert old.all_special_ids == new.all_special_ids
    number_of = tokens._ids(new)
    assert not set(number_of.values()) & {*old.get_vocab().values(), *new.all_special_ids}

    @settings(max_examples=100)
    @given(TEXTS)
    def check(text: str) -> None:
        ids = new.encode(text)
        assert new.decode(ids, skip_special_tokens=True) == text
        wanted = [number_of[word] for word in text.split() if word in number_of]
        assert [number for number in ids if number in number_of.values()] == wanted
        without = " ".join(word for word in text.split() if word not in number_of)
        assert new.encode(without) == old.encode(without)

    check()
    new.save_pretrained(tmp_path)  # as training scripts do
    assert failure(tokenizer_of(tmp_path)) == ""


def tensors(folder: Path) -> dict[str, Any]:
    files = sorted(folder.glob("*.safetensors"))
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


@torch.no_grad()
def logits(folder: Path, size: int) -> list[Any]:
    model, tokenizer = tokens._model(folder).eval(), tokenizer_of(folder)
    found = []
    for text in OLD_TEXTS:
        ids = torch.tensor([tokenizer.encode(text)])
        extra = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
        found.append(model(input_ids=ids, **extra).logits[..., :size])
    return found


@pytest.mark.parametrize("init", ["random", "average", "unused"])
@pytest.mark.parametrize("family", FAMILIES)
def test_old_tokens_keep_their_embeddings_and_logits(
    made: Any, tmp_path: Path, family: str, init: str
) -> None:
    source, out = made(family)[0], tmp_path / "out"
    if init == "unused" and not family.startswith("unigram"):
        with pytest.raises(OptionError, match=r"unused needs 21 rows.*this model has 0 of"):
            add_tokens(source, out, init=init)
        assert not out.exists()
        return
    ids = add_tokens(source, out, init=init)
    old, new = tensors(source), tensors(out)
    assert old.keys() == new.keys()
    grown = [name for name in old if not old[name].equal(new[name])]
    size = len(tokenizer_of(source))
    # T5's unused rows lie where the tokens' ids fall.
    assert len(grown) == (0 if init == "unused" else 1 if family in TIED else 2)
    for name in grown:
        for rows in (slice(size), slice(ids[-1] + 1, None)):
            torch.testing.assert_close(new[name][rows], old[name][rows], rtol=0, atol=0)
        # Were two of them the same, the model could not tell them apart.
        assert len(new[name][ids].unique(dim=0)) == 21
    torch.testing.assert_close(logits(out, size), logits(source, size))


@pytest.mark.parametrize("family", ["byte_bpe_files", "unigram_behind", "llama"])
def test_random_rows_are_drawn_as_the_model_draws_its_own(made: Any, family: str) -> None:
    model = tokens._model(made(family)[0])
    wanted = 1.0 if model.config.model_type == "t5" else model.config.initializer_range
    weight = model.get_input_embeddings().weight
    for embedding in (True, False):
        rows = tokens._random(model, weight, 4000, embedding=embedding).float()
        # 128,000 numbers: the standard error of their deviation is 0.2 %.
        assert rows.std().item() == pytest.approx(wanted, rel=0.01)
        assert abs(rows.mean().item()) < 0.02 * wanted


def test_average_rows_lie_around_the_mean_with_the_embeddings_covariance(made: Any) -> None:
    """Of the rows that have a token: the authors cut T5's matrix to these first."""
    source, out = made("unigram")
    old, new = (tokens._model(one).get_input_embeddings().weight.detach() for one in (source, out))
    used = old[: len(tokenizer_of(source))]
    assert len(old) - len(used) == 28
    ids = list(tokens._ids(tokenizer_of(out)).values())
    covariance = NOISE * torch.cov(used.T)
    spread = covariance.diagonal().mean().sqrt().item()
    torch.testing.assert_close(new[ids], used.mean(0).expand(21, -1), rtol=0, atol=8 * spread)
    assert (old.mean(0) - used.mean(0)).abs().max() > 8 * spread
    rows = tokens._average(used, 20_000)
    torch.testing.assert_close(torch.cov(rows.T), covariance, rtol=0, atol=0.1 * spread**2)


@pytest.mark.parametrize(
    ("family", "flags", "pattern", "message"),
    [
        ("unigram", {}, "{}", "A farmer saw[w_0] ."),
        ("unigram", {}, " {}", "'[w_0]' is encoded as"),
        ("byte_bpe", {"lstrip": True}, "{}", "A farmer saw[w_0] ."),
        ("byte_bpe", {"special": True}, "{}", "'[w_0]' is decoded as ''"),
        ("byte_bpe", None, "", "[w_0] is not in the vocabulary (21 of 21 are missing)"),
        ("byte_bpe", {}, "{}", ""),
    ],
)
def test_the_check_finds_the_traps_of_appendix_b(
    made: Any, family: str, flags: dict[str, bool] | None, pattern: str, message: str
) -> None:
    tokenizer = tokenizer_of(made(family)[0])
    if flags is not None:
        flags = {"normalized": False, **flags}
        added = [AddedToken(pattern.format(one), **flags) for one in NOVEL_TOKENS]
        tokenizer.add_tokens(added, special_tokens=flags.get("special", False))
    found = failure(tokenizer)
    assert message in found and bool(found) == bool(message)


def test_what_cannot_be_done_is_one_line_and_nothing_is_written(made: Any, tmp_path: Path) -> None:
    source, novel = made("byte_bpe")
    lower, broken, full = (tmp_path / name for name in ("lower", "broken", "full"))
    families.make("byte_lower", lower)
    shutil.copytree(source, broken)
    (broken / "model.safetensors").write_bytes(b"x")
    full.mkdir()
    (full / "file").write_text("")
    for model, out, init, message in (
        (lower, "out", "random", "no exact round trip with novel tokens: 'The farmer"),
        (broken, "out", "random", "cannot load it"),
        (Path("t5-base"), "out", "random", "t5-base is not a folder.*none is downloaded"),
        (novel, "out", "random", "has novel tokens already"),
        (source, "full", "random", "is not empty"),
        (source, "full/file/out", "random", "cannot write"),
        (source, "out", "mean", "no initialisation 'mean'; use random, average, unused"),
    ):
        with pytest.raises(OptionError, match=message):
            add_tokens(model, tmp_path / out, init=init)
    assert {path.name for path in tmp_path.iterdir()} == {"lower", "broken", "full"}


def test_the_command(made: Any, cli: Callable[..., Any], tmp_path: Path) -> None:
    source, out = str(made("unigram")[0]), str(tmp_path / "out")
    for arguments, status, said in (
        ((source, "--check"), 1, "is not in the vocabulary"),
        ((source,), 1, "give --output, or --check"),
        (
            (source, "--init", "unused", "-o", out), 0,
            "[w_0] to [w_20] have the ids 102 to 122, unused embeddings",
        ),
        ((out, "--check"), 0, f"{len(NOTATION)} texts came back exactly"),
    ):  # fmt: skip
        done = cli("cogs", "add-tokens", *arguments)
        assert (done.returncode, said in done.stdout + done.stderr) == (status, True)
