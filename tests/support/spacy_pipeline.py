"""A tiny spaCy pipeline with a parser, trained on the explanations of conceptual_mini."""

import json
import random
import shutil
from pathlib import Path

from lm_eval_ext.benchmarks.conceptual import mini
from support import kept

FACTS = {item["explanation"]: verb for verb, items in mini.concepts().items() for item in items}
"""A sentence, and the verb that is its root."""

EPOCHS = 30
NAME = "tiny"


def trained() -> Path:
    """Return the pipeline's folder, for reading only; the first call trains it."""
    key = kept.key_of([Path(__file__), kept.PACKAGE / "benchmarks/conceptual/mini.yaml"], ["spacy"])
    return kept.built_once("spacy-pipeline", key, _train) / NAME


def _train(folder: Path) -> None:
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("en", meta={"name": "tiny", "version": "1.2.3"})
    nlp.add_pipe("parser")
    examples = []
    for fact, verb in FACTS.items():
        words = fact.split()
        root = words.index(verb)
        deps = ["dep"] * len(words)
        deps[root] = "ROOT"
        heads = [root] * len(words)
        doc = nlp.make_doc(fact)
        examples.append(Example.from_dict(doc, {"heads": heads, "deps": deps}))
    random.seed(0)
    spacy.util.fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples)
    rng = random.Random(0)
    for _ in range(EPOCHS):
        rng.shuffle(examples)
        nlp.update(examples, sgd=optimizer, drop=0.1)
    nlp.to_disk(folder / NAME)


def copy(folder: Path, target: Path, *, version: str) -> None:
    """Copy a pipeline and change its version."""
    shutil.copytree(folder, target)
    file = target / "meta.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": version}))
