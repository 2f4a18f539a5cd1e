"""COGS's material for training, and novel tokens through training, saving and loading."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import families
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import mini, training
from lm_eval_ext.benchmarks.cogs.lexicons import replacements
from lm_eval_ext.benchmarks.cogs.load import Words
from lm_eval_ext.benchmarks.cogs.tokens import failure
from lm_eval_ext.benchmarks.cogs.training import prepare, sentences
from lm_eval_ext.errors import OptionError
from lm_eval_ext.training import command
from lm_eval_ext.training.starting import load


def test_the_gates_are_the_exposure_examples_and_the_development_set() -> None:
    made = prepare({"corpus": "mini", "lexicon": "tokens", "separator": " ="}, 0)
    exposed = made.gates["exposure"]
    assert len(exposed) == 7, "six constructions and a primitive"
    assert set(exposed) == {pair for pair in made.train if "[w_" in pair[1]}
    assert [len(made.train), len(made.gates["dev"])] == [2029, 200]
    assert made.model_file == {"metadata": {"cogs_separator": " =", "cogs_lexicon": "tokens"}}
    assert [made.score(one, "f ( x )") for one in (" f (  x ) ", "f ( y )")] == [1.0, 0.0]
    assert made.digest() != prepare({"corpus": "mini", "separator": " ="}, 0).digest()


@pytest.mark.parametrize(
    ("corpus", "data", "asked"),
    [
        ("cogs", {"lexicon": "fresh", "seed": 0, "shape": "random_short"}, "cogs_fresh_gen_small"),
        ("cogs", {"lexicon": "fresh", "fresh": 0, "shape": "cvcv_short"}, "cogs_fresh_gen_small"),
        ("mini", {"lexicon": "fresh", "seed": 0, "shape": "random_short"}, "cogs_mini_fresh_gen"),
        ("mini", {"lexicon": "fresh", "fresh": 0, "shape": "cvcv_short"}, "cogs_mini_fresh_gen"),
        ("cogs", {"lexicon": "cvcv_short"}, "cogs_cvcv_short_gen_small"),
        ("mini", {"lexicon": "cvcv_short"}, "cogs_mini_gen"),
        ("mini", {}, "cogs_mini_gen"),
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
    """One of each, a hundred, or the same one a hundred times more."""

    def published(name: str) -> list[tuple[str, ...]]:
        lines = (real_data / "cogs" / f"{name}.tsv").read_text().splitlines()
        return sorted(tuple(line.split("\t")[:2]) for line in lines)

    hundred, repeated = prepare({"exposure": "hundred"}, 0), prepare({"copies": 100}, 0)
    assert len(hundred.train) == 24_155 - 15 + 1_500
    assert sorted(hundred.train[-1500:]) == published("train_100_exposure_examples")
    assert set(hundred.gates["exposure"]) == set(published("train_100_exposure_examples"))
    exposed = repeated.gates["exposure"]
    assert sorted(exposed) == published("train_exposure_examples")
    assert len(repeated.train) == 24_155 + 1_500
    assert {repeated.train.count(pair) for pair in exposed[:3]} == {101}


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
        ({"corpus": "mini", "exposure": "hundred"}, "corpus cogs"),
        ({"copies": -1}, "copies"),
    ],
)
def test_options_that_do_not_fit_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        prepare(data, 0)


def test_a_recipe_adds_novel_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there after training, saving and loading."""
    families.make("unigram", tmp_path / "model")
    few = [one for one in mini.examples("train") if one.type == "primitive"]
    monkeypatch.setattr(training.load, "examples", lambda *_: (few, None))
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
    assert failure(load(trained.folder)[1]) == ""
    assert trained.model_file is not None
    assert "display_name: tokens, average" in trained.model_file.read_text()
