"""COGS's material for training, and novel tokens through training, saving and loading."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import families
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import load as cogs_load
from lm_eval_ext.benchmarks.cogs import mini, training
from lm_eval_ext.benchmarks.cogs.lexicons import replacements, substitute
from lm_eval_ext.benchmarks.cogs.load import Words
from lm_eval_ext.benchmarks.cogs.tokens import failure
from lm_eval_ext.benchmarks.cogs.training import prepare, sentences
from lm_eval_ext.errors import OptionError
from lm_eval_ext.training import command
from lm_eval_ext.training.starting import load


def test_the_gates_are_the_exposure_examples_and_the_development_set() -> None:
    made = prepare({"corpus": "mini", "lexicon": "tokens", "separator": " ="}, 0)
    words = {f"[w_{number}]" for number in range(21)}
    exposed = made.gates["exposure"]
    assert len(exposed) == 7, "six constructions and a primitive"
    assert all(words & set(form.split()) for _, form in exposed)
    others = [pair for pair in made.train if pair not in exposed]
    assert not any(words & set(text.split()) for pair in others for text in pair)
    assert [len(made.train), len(made.gates["dev"])] == [2029, 200]
    assert made.model_file == {"metadata": {"cogs_separator": " =", "cogs_lexicon": "tokens"}}
    assert made.score("f ( x )", " f (  x ) ") == 1.0
    assert made.score("f ( y )", "f ( x )") == 0.0
    assert made.digest() != prepare({"corpus": "mini", "separator": " ="}, 0).digest()


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        ({"lexicon": "fresh", "seed": 0, "shape": "random_short"}, "cogs_fresh_gen"),
        ({"lexicon": "fresh", "fresh": 7, "shape": "cvcv_short"}, "cogs_fresh_gen"),
        ({"lexicon": "cvcv_short"}, "cogs_cvcv_short_gen"),
        ({"lexicon": "tokens"}, "cogs_tokens_gen"),
        ({}, "cogs_unmodified_gen"),
    ],
)
@pytest.mark.parametrize("corpus", ["mini", "cogs"])
def test_the_tasks_ask_the_words_that_were_trained(
    corpus: str, data: dict[str, Any], asked: str, monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """The model file has all that the words depend on, a seed of 0 too."""
    if corpus == "cogs":
        monkeypatch.setenv("LM_EVAL_EXT_DATA", str(request.getfixturevalue("shared_data")))
    wanted = set(Words(corpus=corpus, **data).words().values())
    made = prepare({"corpus": corpus, **data}, 0)
    trained = {word for _, form in made.gates["exposure"] for word in form.split()}

    def words(**metadata: Any) -> set[str]:
        own = "cogs_mini_fresh_gen" if "shape" in data else "cogs_mini_gen"
        task = load_task(f"{asked}_small" if corpus == "cogs" else own, **metadata)
        return {word for doc in task.test_docs() for word in task.doc_to_target(doc).split()}

    assert len(wanted & trained) > 3
    assert wanted & trained <= words(**made.model_file.get("metadata", {}))
    if "shape" in data:
        assert not wanted & words(), "those of the task's own seed"


def test_exposure_is_the_authors(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each, a hundred, or the same one a hundred times more."""
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(shared_data))

    def published(name: str) -> list[tuple[str, ...]]:
        lines = (shared_data / "cogs" / f"{name}.tsv").read_text().splitlines()
        return sorted(tuple(line.split("\t")[:2]) for line in lines)

    hundred, repeated = prepare({"exposure": "hundred"}, 0), prepare({"copies": 100}, 0)
    assert len(hundred.train) == 24_155 - 15 + 1_500
    assert sorted(hundred.train[-1500:]) == published("train_100_exposure_examples")
    assert set(hundred.gates["exposure"]) == set(published("train_100_exposure_examples"))
    exposed = repeated.gates["exposure"]
    assert sorted(exposed) == published("train_exposure_examples")
    assert len(repeated.train) == 24_155 + 1_500
    assert {repeated.train.count(pair) for pair in exposed[:3]} == {101}


def test_made_up_words_stand_for_common_ones_and_are_nobody_elses() -> None:
    plain, rare = list(sentences(300, 1)), list(sentences(300, 1, rare=0.5))
    known = {
        word for one in mini.ALL_SPLITS for e in mini.examples(one) for word in e.sentence.split()
    }
    made = [word for one in rare for word in one.split() if word not in known]
    assert 100 < len(made) < 180
    assert all(7 <= len(word) <= 14 for word in made)
    assert not set(made) & set(replacements("cvcv_short").values())
    assert {word for one in plain for word in one.split()} <= known


def test_generated_text_has_key_words_in_all_positions_and_nothing_that_is_asked() -> None:
    made = list(sentences(2000, 1))
    asked = {one.sentence for split in mini.ALL_SPLITS for one in mini.examples(split)}
    assert not asked & set(made)
    assert made != list(sentences(2000, 2))
    walrus = [one for one in made if "walrus" in one.split()]
    subjects = [one for one in walrus if one.split()[1] == "walrus"]
    assert 0.1 < len(subjects) / len(walrus) < 0.9
    assert {"tickled", "polished"} <= {word for one in made for word in one.split()}


def test_options_that_do_not_fit_are_refused() -> None:
    for data, said in (
        ({"lexcion": "tokens"}, "did you mean lexicon"),
        ({"lexicon": "cvcv_short", "embeddings": "random"}, "for the lexicon tokens"),
        ({"sentences": 10}, "corpus mini"),
        ({"corpus": "mini", "exposure": "hundred"}, "corpus cogs"),
        ({"copies": -1}, "copies"),
    ):
        with pytest.raises(OptionError, match=said):
            prepare(data, 0)


@pytest.mark.parametrize("family", ["unigram", "byte_bpe", "llama"])
def test_novel_tokens_come_back_after_training_and_loading(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of T5's, GPT-2's and Llama's kind of tokenizer; texts of cogs_mini's tasks."""
    families.make(family, tmp_path / "model")
    few = [one for one in mini.examples("train") if one.type == "primitive"]
    monkeypatch.setattr(training, "_train", lambda options: (few, {}))
    whole = cogs_load.examples

    def examples(corpus: str, split: str, *rest: str) -> Any:
        return (few[:2], None) if split == "dev" else whole(corpus, split, *rest)

    monkeypatch.setattr(cogs_load, "examples", examples)
    recipe = {
        "title": "{lexicon}, {embeddings}",
        "paper": "",
        "departures": [],
        "source": "cogs",
        "data": {"corpus": "mini", "lexicon": "tokens", "embeddings": "average"},
        "model": {"start": str(tmp_path / "model")},
        "training": {"max_steps": 1, "learning_rate": 1e-3, "eval_steps": 1},
        "gates": {"exposure": 0.0},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    (trained,) = command.train(str(tmp_path / "recipe.yaml"), tmp_path / "out")
    _, tokenizer = load(trained.folder)
    assert failure(tokenizer) == ""
    words = replacements("tokens", items=mini.items())
    some = [
        substitute(text, words)
        for split in ("gen", "testlex")
        for one in mini.examples(split)[::7]
        for text in (one.sentence, one.form)
    ]
    ids = tokenizer(some)["input_ids"]
    assert tokenizer.batch_decode(ids, skip_special_tokens=True) == some
    assert trained.model_file is not None
    named = yaml.safe_load(trained.model_file.read_text())
    assert named["display_name"] == "tokens, average"
