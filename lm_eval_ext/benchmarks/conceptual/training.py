"""Material of in-context training on questions about texts, as of the paper's Tk-QA (section 3.3).

Each prompt has random demonstrations before its question. The published script that is nearest to
the paper's (github MIR-MU/CoAT, ``training/``) says how many and how long. The questions are from
files that the user names, or short ones that are generated.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError, model_validator

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual.answers import is_right
from lm_eval_ext.benchmarks.conceptual.prompt import framed
from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.reading import Strict, embedded
from lm_eval_ext.training.recipe import Material, Pair

DEV = "dev"
GATES = (DEV,)
"""The gate: the share of whole answers that are right, on the development set."""


SHOWN = 2, 5
"""The least and the largest number of demonstrations in a prompt, as in the published script."""

LONGEST_CONTEXT, LONGEST_SHOWN = 2000, 8000
"""Questions about a text with so many characters are left out, as in the script; so are prompts
whose demonstrations have more."""

DEV_EXAMPLES = 200
"""The largest number of questions in the development set, as in the script."""


class Options(Strict):
    """What a recipe's ``data`` may say.

    Attributes:
        train: A file with questions (:func:`read`); ``dev``: another one, for development.
        generated: Number of generated questions instead of files; a text states ``facts`` facts.
        format: ``question`` as the published script writes prompts, or ``input`` as the tasks.
    """

    train: str | None = None
    dev: str | None = None
    generated: int = Field(0, ge=0)
    facts: int = Field(2, ge=1, le=7)
    format: Literal["question", "input"] = "question"

    @model_validator(mode="after")
    def _fit(self) -> "Options":
        if bool(self.generated) == bool(self.train) or bool(self.train) != bool(self.dev):
            raise ValueError("give train and dev, files with questions, or generated")
        return self


def prepare(options: Options, seed: int) -> Material:
    """The material of a recipe.

    Raises:
        DataError: A file is missing or broken.
    """
    train, dev, facts = _questions(options, seed)
    # Demonstrations of the development set are of the development set, as in the published script.
    held = _pairs(dev, options, "dev")[:DEV_EXAMPLES]
    pairs = _pairs(train, options, seed)
    facts["left_out"] = len(train) - len(pairs)
    return Material(
        pairs,
        held,
        {DEV: held},
        facts,
        score=lambda answer, target: float(is_right(answer, target)),
        lossy=True,
        max_gen_toks=64,
    )


class Question(NamedTuple):
    """A question about a text."""

    question: str
    context: str
    answer: str


def _questions(
    options: Options, seed: int
) -> tuple[list[Question], list[Question], dict[str, Any]]:
    """Questions to train on, and those of the development set."""
    if options.train is None or options.dev is None:
        held = list(islice(generated("dev", options.facts), DEV_EXAMPLES))
        texts = {one.context for one in held}
        drawn = (one for one in generated(seed, options.facts) if one.context not in texts)
        return list(islice(drawn, options.generated)), held, {}
    files = [Path(name).expanduser() for name in (options.train, options.dev)]
    train, dev = (
        [one for one in read(file) if len(one.context) < LONGEST_CONTEXT] for file in files
    )
    return train, dev, dict(zip(("train", "dev"), map(sha256_of, files), strict=True))


def _pairs(questions: Sequence[Question], options: Options, seed: object) -> list[Pair]:
    """Prompts with demonstrations, never a question before itself, and answers.

    A question that has too few demonstrations is left out.
    """
    found = []
    for place, one in enumerate(questions):
        rng = random.Random(f"demonstrations, {seed}, {place}")
        count = rng.randint(*SHOWN)
        shown: list[int] = []
        for _ in range(count):
            # One, and spares for those that are shown already, the question and its copies.
            drawn = rng.sample(range(len(questions)), min(len(questions), len(shown) + 4))
            fresh = (n for n in drawn if n not in shown and questions[n][:2] != one[:2])
            shown += islice(fresh, 1)
        told = [f"{_asked(questions[n], options)} {questions[n].answer}" for n in shown]
        if len(told) == count and sum(map(len, told)) <= LONGEST_SHOWN:
            between = "\n" if options.format == "input" else " "
            found.append((between.join([*told, _asked(one, options)]), one.answer))
    return found


def _asked(one: Question, options: Options) -> str:
    if options.format == "input":
        return framed(f"{one.question} {one.context}")
    return f"Question: {one.question} Context: {one.context} Answer:"


class _Answer(BaseModel):
    text: str


class _Asked(BaseModel):
    question: str
    answers: Annotated[list[_Answer], Field(min_length=1)]


class _Paragraph(BaseModel):
    context: str
    qas: list[_Asked]


class _Article(BaseModel):
    paragraphs: list[_Paragraph]


class _Squad(BaseModel):
    data: list[_Article]


def read(file: Path) -> list[Question]:
    """The questions of a file in SQuAD's JSON; the first of several answers counts.

    Raises:
        DataError: It cannot be read, or is in another format; the place is named.
    """
    try:
        content = _Squad.model_validate_json(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise DataError(f"{file}: not in SQuAD's JSON: {first_problem(error)}") from None
    return [
        Question(*(" ".join(text.split()) for text in texts))
        for article in content.data
        for paragraph in article.paragraphs
        for one in paragraph.qas
        for texts in [(one.question, paragraph.context, one.answers[0].text)]
    ]


def generated(seed: object, facts: int) -> Iterator[Question]:
    """Questions without end about texts of so many facts; no two facts share a word's place."""
    rng = random.Random(f"generated questions, {seed}")
    parts = embedded(__file__, "mini_reading.yaml")
    words, kinds = parts["words"], parts["facts"]
    while True:
        drawn = {kind: rng.sample(some, facts) for kind, some in words.items()}
        filled = [{kind: some[place] for kind, some in drawn.items()} for place in range(facts)]
        of_fact = [rng.choice(kinds) for _ in range(facts)]
        stated = (fact["sentence"].format(**own) for fact, own in zip(of_fact, filled, strict=True))
        context = " ".join(stated)
        place = rng.randrange(facts)
        chosen = rng.choice(list(of_fact[place]["questions"].items()))
        asked, answer = (text.format(**filled[place]) for text in chosen)
        yield Question(asked, context, answer)
