"""COGS's material for training; a novel token is one token everywhere, and the rest as before."""

import functools
import shutil
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from support import families
from support.tasks import load_task
from tokenizers import AddedToken

from lm_eval_ext.benchmarks.cogs import load as cogs_load
from lm_eval_ext.benchmarks.cogs import mini, tokens, training
from lm_eval_ext.benchmarks.cogs.lexicons import replacements
from lm_eval_ext.benchmarks.cogs.load import Words
from lm_eval_ext.benchmarks.cogs.records import Example
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
from lm_eval_ext.training.recipe import prepare as prepare_source
from lm_eval_ext.training.starting import load

pytestmark = pytest.mark.slow

prepare = functools.partial(prepare_source, training.__name__)


def test_the_gates_are_the_exposure_examples_and_the_development_set() -> None:
    """A recipe's material has both gates, the metadata of its tasks, and the score of a form."""
    material = prepare({"corpus": "mini", "lexicon": "tokens", "separator": " ="}, 0)
    exposure = material.gates["exposure"]
    assert len(exposure) == 7, "six constructions and a primitive"
    assert set(exposure) == {pair for pair in material.train if "[w_" in pair[1]}
    assert len(material.train) == 2029
    assert len(material.gates["dev"]) == 200
    assert material.model_file == {
        "metadata": {"cogs_separator": " =", "cogs_lexicon": "tokens"},
    }
    assert material.score(" f (  x ) ", "f ( x )") == 1.0
    assert material.score("f ( y )", "f ( x )") == 0.0


def words_of(texts: Iterable[str]) -> list[str]:
    """Return the words of all texts, with repeats."""
    words: list[str] = []
    for text in texts:
        words.extend(text.split())
    return words


def words_of_task(name: str, **metadata: Any) -> set[str]:
    """Return all words of a task's logical forms."""
    task = load_task(name, **metadata)
    return set(words_of(task.doc_to_target(doc) for doc in task.test_docs()))


@pytest.mark.parametrize(
    ("corpus", "data", "task"),
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
    corpus: Literal["cogs", "mini"],
    data: dict[str, Any],
    task: str,
    request: pytest.FixtureRequest,
) -> None:
    """The model file has all that the words depend on, a seed of 0 too."""
    if corpus == "cogs":
        request.getfixturevalue("real_data")
    new_words = set(Words(corpus=corpus, **data).words().values())
    material = prepare({"corpus": corpus, **data}, 0)
    trained = new_words.intersection(words_of(form for _, form in material.gates["exposure"]))
    assert len(trained) > 3
    assert trained <= words_of_task(task, **material.model_file.get("metadata", {}))
    if "shape" in data:
        assert not new_words & words_of_task(task), "without the model file, the task's own seed"


def test_exposure_is_the_authors(real_data: Path) -> None:
    """The gate has the published exposure examples; the training set has the published size."""
    published = []
    for line in (real_data / "cogs/train_exposure_examples.tsv").read_text().splitlines():
        sentence, form, _ = line.split("\t")
        published.append((sentence, form))
    material = prepare({}, 0)
    assert sorted(material.gates["exposure"]) == sorted(published)
    assert len(material.train) == 24_155
    assert len(material.facts["cogs/train"]) == 64


def sentences_of_mini() -> set[str]:
    """Return all sentences of cogs_mini."""
    texts: set[str] = set()
    for split in mini.ALL_SPLITS:
        texts.update(example.sentence for example in mini.examples(split))
    return texts


def test_generated_text_has_key_words_in_all_positions_and_nothing_that_is_asked() -> None:
    """No generated sentence is in mini, but their words are; the walrus is subject and object."""
    generated = list(sentences(2000, 1))
    assert sentences_of_mini().isdisjoint(generated)
    assert generated != list(sentences(2000, 2))
    with_walrus = 0
    as_subject = 0
    for text in generated:
        sentence_words = text.split()
        with_walrus += "walrus" in sentence_words
        as_subject += sentence_words[1] == "walrus"
    assert 0.1 < as_subject / with_walrus < 0.9
    words = set(words_of(generated))
    assert {"tickled", "polished"} <= words
    assert words.issubset(words_of(sentences_of_mini()))


def test_rare_words_of_generated_text_are_made_up() -> None:
    """Made-up words stand for common ones, and none is a word of a lexicon."""
    mini_words = set(words_of(sentences_of_mini()))
    words = words_of(sentences(300, 1, rare=0.5))
    new_words = [word for word in words if word not in mini_words]
    assert 100 < len(new_words) < 180
    for word in new_words:
        assert 7 <= len(word) <= 14, word
    assert set(replacements("cvcv_short").values()).isdisjoint(new_words)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"lexcion": "tokens"}, "did you mean lexicon"),
        ({"lexicon": "cvcv_short", "embeddings": "random"}, "for the lexicon tokens"),
        ({"sentences": 10}, "corpus mini"),
    ],
    ids=["a misspelt key", "tokens of another lexicon", "sentences of another corpus"],
)
def test_options_that_do_not_fit_are_refused(data: dict[str, Any], message: str) -> None:
    """The error says which option, or which other option it needs."""
    with pytest.raises(OptionError, match=message):
        prepare(data, 0)


def test_a_recipe_adds_novel_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens are still there after training, saving and loading."""
    families.make("unigram", tmp_path / "model")
    primitives = [example for example in mini.examples("train") if example.type == "primitive"]

    def load_primitives(*_: object) -> tuple[list[Example], list[Example]]:
        return primitives, []

    monkeypatch.setattr(cogs_load, "examples", load_primitives)
    settings = {
        "data": {"corpus": "mini", "prefix": "", "embeddings": "average"},
        "model.start": str(tmp_path / "model"),
        "training": {"max_steps": 1, "eval_steps": 1},
        "gates": {},
    }
    (trained,) = command.train("cogs_t5_base_tokens", tmp_path / "out", settings=settings)
    assert failure(load(trained.folder)[1]) == ""
    assert trained.model_file is not None
    assert "display_name: COGS tokens, T5-base fine-tuned, av" in trained.model_file.read_text()


TIED = ("byte_bpe", "unigram", "llama_legacy")
"""Families whose input and output embeddings are one matrix."""

FAMILIES = (*TIED, "byte_bpe_files", "unigram_behind", "llama", "llama_first")


def tokenizer_of(folder: Path) -> Any:
    """Return the tokenizer of a model's folder."""
    return tokens._tokenizer(folder)


@dataclass(frozen=True)
class ModelPair:
    """The folder of a family's model, and of the same model with novel tokens."""

    plain: Path
    novel: Path


MakePair = Callable[[str], ModelPair]


@pytest.fixture(scope="module")
def make_pair(tmp_path_factory: pytest.TempPathFactory) -> MakePair:
    """Return a function that makes the two models of a family, once each."""
    folder = tmp_path_factory.mktemp("families")

    @functools.cache
    def make(family: str) -> ModelPair:
        pair = ModelPair(plain=folder / family, novel=folder / f"{family}_novel")
        families.make(family, pair.plain)
        add_tokens(pair.plain, pair.novel, init="average")
        return pair

    return make


WORDS = st.sampled_from(sorted({*" ".join(OLD_TEXTS).split()}))
LETTERS = st.text(string.ascii_letters, min_size=1, max_size=9)
TEXTS = st.lists(st.sampled_from(NOVEL_TOKENS) | WORDS | LETTERS, min_size=1).map(" ".join)


@pytest.mark.parametrize("family", FAMILIES)
def test_any_text_comes_back_and_old_tokens_keep_their_ids(
    make_pair: MakePair, family: str, tmp_path: Path
) -> None:
    """Each novel token is one token anywhere in a text, and the text around it is as before."""
    pair = make_pair(family)
    old_tokenizer = tokenizer_of(pair.plain)
    tokenizer = tokenizer_of(pair.novel)
    old_vocabulary = old_tokenizer.get_vocab()
    assert old_vocabulary.items() <= tokenizer.get_vocab().items()
    assert old_tokenizer.all_special_ids == tokenizer.all_special_ids
    novel_ids = tokens._ids(tokenizer)
    taken_ids = {*old_vocabulary.values(), *tokenizer.all_special_ids}
    assert not set(novel_ids.values()) & taken_ids

    @settings(max_examples=100)
    @given(TEXTS)
    def check(text: str) -> None:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
        expected = [novel_ids[word] for word in text.split() if word in novel_ids]
        assert [token_id for token_id in ids if token_id in novel_ids.values()] == expected
        old_words = " ".join(word for word in text.split() if word not in novel_ids)
        assert tokenizer.encode(old_words) == old_tokenizer.encode(old_words)

    check()
    tokenizer.save_pretrained(tmp_path)  # as training scripts do
    assert failure(tokenizer_of(tmp_path)) == ""


def tensors_of(folder: Path) -> dict[str, Any]:
    """Return all weights of a saved model by name."""
    tensors: dict[str, Any] = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
    return tensors


def old_logits(folder: Path, size: int) -> list[Any]:
    """Return the logits of the first ``size`` tokens for old texts."""
    model = tokens._model(folder).eval()
    tokenizer = tokenizer_of(folder)
    logits = []
    for text in OLD_TEXTS:
        ids = torch.tensor([tokenizer.encode(text)])
        inputs = {"input_ids": ids}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = ids
        with torch.no_grad():
            logits.append(model(**inputs).logits[..., :size])
    return logits


@pytest.mark.parametrize("family", [name for name in FAMILIES if "unigram" not in name])
def test_a_model_without_unused_rows_is_refused(
    make_pair: MakePair, tmp_path: Path, family: str
) -> None:
    """The error says how many rows are needed and there; nothing is written."""
    out = tmp_path / "out"
    with pytest.raises(OptionError, match=r"unused needs 21 rows.*this model has 0 of"):
        add_tokens(make_pair(family).plain, out, init="unused")
    assert not out.exists()


def initializations() -> list[tuple[str, str]]:
    """Return each family with each initialization that it can have."""
    pairs = []
    for family in FAMILIES:
        pairs.append((family, "random"))
        pairs.append((family, "average"))
        if family.startswith("unigram"):
            pairs.append((family, "unused"))
    return pairs


@pytest.mark.parametrize(("family", "init"), initializations())
def test_old_tokens_keep_their_embeddings_and_logits(
    make_pair: MakePair, tmp_path: Path, family: str, init: str
) -> None:
    """Only rows of novel tokens change, and these differ from each other."""
    source = make_pair(family).plain
    out = tmp_path / "out"
    ids = add_tokens(source, out, init=init)
    old = tensors_of(source)
    new = tensors_of(out)
    assert old.keys() == new.keys()
    changed = [name for name in old if not old[name].equal(new[name])]
    if init == "unused":
        # T5's unused rows lie where the tokens' ids fall.
        assert len(changed) == 0
    elif family in TIED:
        assert len(changed) == 1
    else:
        assert len(changed) == 2
    size = len(tokenizer_of(source))
    for name in changed:
        for rows in (slice(size), slice(ids[-1] + 1, None)):
            torch.testing.assert_close(new[name][rows], old[name][rows], rtol=0, atol=0)
        # If two of them were the same, the model could not tell them apart.
        assert len(new[name][ids].unique(dim=0)) == 21
    torch.testing.assert_close(old_logits(out, size), old_logits(source, size))


@pytest.mark.parametrize("embedding", [True, False], ids=["input", "output"])
@pytest.mark.parametrize("family", ["byte_bpe_files", "unigram_behind", "llama"])
def test_random_rows_are_drawn_as_the_model_draws_its_own(
    make_pair: MakePair, family: str, embedding: bool
) -> None:
    """They have mean zero and the standard deviation of the model's initialization."""
    model = tokens._model(make_pair(family).plain)
    deviation = 1.0 if model.config.model_type == "t5" else model.config.initializer_range
    weight = model.get_input_embeddings().weight
    rows = tokens._random(model, weight, 4000, embedding=embedding).float()
    # 128,000 numbers: the standard error of their deviation is 0.2 %.
    assert rows.std().item() == pytest.approx(deviation, rel=0.01)
    assert abs(rows.mean().item()) < 0.02 * deviation


def input_embeddings(folder: Path) -> Any:
    return tokens._model(folder).get_input_embeddings().weight.detach()


def test_average_rows_lie_around_the_mean_with_the_embeddings_covariance(
    make_pair: MakePair,
) -> None:
    """Both are of the rows that have a token: the authors cut T5's matrix to these first."""
    pair = make_pair("unigram")
    old = input_embeddings(pair.plain)
    new = input_embeddings(pair.novel)
    used = old[: len(tokenizer_of(pair.plain))]
    assert len(old) - len(used) == 28
    ids = list(tokens._ids(tokenizer_of(pair.novel)).values())
    covariance = NOISE * torch.cov(used.T)
    spread = covariance.diagonal().mean().sqrt().item()
    means = used.mean(0).expand(21, -1)
    torch.testing.assert_close(new[ids], means, rtol=0, atol=8 * spread)
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
    ],
    ids=["space lost", "space in the token", "space stripped", "special token"],
)
def test_the_check_finds_the_traps_of_appendix_b(
    make_pair: MakePair, family: str, flags: dict[str, bool], pattern: str, message: str
) -> None:
    """Tokens that were added wrongly are found, with the text that does not come back."""
    tokenizer = tokenizer_of(make_pair(family).plain)
    add_novel_tokens(tokenizer, pattern, flags)
    assert message in failure(tokenizer)


def add_novel_tokens(tokenizer: Any, pattern: str, flags: dict[str, bool]) -> None:
    added = []
    for token in NOVEL_TOKENS:
        added.append(AddedToken(pattern.format(token), normalized=False, **flags))
    tokenizer.add_tokens(added, special_tokens=flags.get("special", False))


def test_the_check_finds_missing_tokens(make_pair: MakePair) -> None:
    """A tokenizer without novel tokens is told apart, with their number."""
    missing = "[w_0] is not in the vocabulary (21 of 21 are missing)"
    assert missing in failure(tokenizer_of(make_pair("byte_bpe").plain))


def test_the_check_passes_tokens_that_were_added_well(make_pair: MakePair) -> None:
    """Plainly added tokens are right in a byte-level vocabulary."""
    tokenizer = tokenizer_of(make_pair("byte_bpe").plain)
    add_novel_tokens(tokenizer, "{}", {})
    assert failure(tokenizer) == ""


def lower_case_model(make_pair: MakePair, folder: Path) -> Path:
    families.make("byte_lower", folder / "lower")
    return folder / "lower"


def broken_model(make_pair: MakePair, folder: Path) -> Path:
    shutil.copytree(make_pair("byte_bpe").plain, folder / "broken")
    (folder / "broken" / "model.safetensors").write_bytes(b"x")
    return folder / "broken"


def hub_model(make_pair: MakePair, folder: Path) -> Path:
    return Path("t5-base")


def novel_model(make_pair: MakePair, folder: Path) -> Path:
    return make_pair("byte_bpe").novel


def plain_model(make_pair: MakePair, folder: Path) -> Path:
    return make_pair("byte_bpe").plain


@pytest.mark.parametrize(
    ("model", "out", "init", "message"),
    [
        (
            lower_case_model,
            "out",
            "random",
            "no exact round trip with novel tokens: 'The farmer",
        ),
        (broken_model, "out", "random", "cannot load it"),
        (hub_model, "out", "random", "t5-base is not a folder.*none is downloaded"),
        (novel_model, "out", "random", "has novel tokens already"),
        (plain_model, "full", "random", "is not empty"),
        (plain_model, "full/file/out", "random", "cannot write"),
        (plain_model, "out", "mean", "no initialisation 'mean'; use random, average, unused"),
    ],
    ids=[
        "lower case",
        "broken weights",
        "a name on the hub",
        "novel tokens",
        "a full folder",
        "a file as a folder",
        "no such initialization",
    ],
)
def test_a_refusal_is_one_line_and_nothing_is_written(
    make_pair: MakePair,
    tmp_path: Path,
    *,
    model: Callable[[MakePair, Path], Path],
    out: str,
    init: str,
    message: str,
) -> None:
    """The error says what is wrong with the model, the folder or the initialization."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    source = model(make_pair, tmp_path)
    before = set(tmp_path.iterdir())
    with pytest.raises(OptionError, match=message):
        add_tokens(source, tmp_path / out, init=init)
    assert set(tmp_path.iterdir()) == before


def test_the_command_adds_tokens_and_checks_them(
    make_pair: MakePair, cli: Callable[..., Any], tmp_path: Path
) -> None:
    """A failed check of ``cogs add-tokens`` has the status 1."""
    source = str(make_pair("unigram").plain)
    out = str(tmp_path / "out")

    unchecked = cli("cogs", "add-tokens", source, "--check")
    assert unchecked.returncode == 1
    assert "is not in the vocabulary" in unchecked.stdout + unchecked.stderr

    incomplete = cli("cogs", "add-tokens", source)
    assert incomplete.returncode == 1
    assert "give --output, or --check" in incomplete.stdout + incomplete.stderr

    added = cli("cogs", "add-tokens", source, "--init", "unused", "-o", out)
    assert added.returncode == 0
    assert "[w_0] to [w_20] have the ids 102 to 122, unused embeddings" in (
        added.stdout + added.stderr
    )

    checked = cli("cogs", "add-tokens", out, "--check")
    assert checked.returncode == 0
    assert f"{len(NOTATION)} texts came back exactly" in checked.stdout + checked.stderr
