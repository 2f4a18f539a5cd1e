"""Material of in-context training on questions about texts, as of the paper's Tk-QA (section 3.3).

Each prompt has random demonstrations before its question. The published script that is nearest to
the paper's (github MIR-MU/CoAT, ``training/``) says how many and how long. The questions are from
files that the user names, or short ones that are generated.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypedDict

from pydantic import BaseModel, Field, ValidationError, model_validator

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual.matching import is_right
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
    """The options in a recipe's ``data``.

    Attributes:
        train: A file with questions (:func:`read`).
        dev: Another file, for development.
        generated: Number of generated questions instead of files.
        facts: Number of facts that a text of a generated question states.
        format: ``question`` as the published script writes prompts, or ``input`` as the tasks.
    """

    train: str | None = None
    dev: str | None = None
    generated: int = Field(0, ge=0)
    facts: int = Field(2, ge=1, le=7)
    format: Literal["question", "input"] = "question"

    @model_validator(mode="after")
    def _consistent(self) -> "Options":
        if bool(self.generated) == bool(self.train) or bool(self.train) != bool(self.dev):
            raise ValueError("give train and dev, files with questions, or generated")
        return self


def prepare(options: Options, seed: int) -> Material:
    """Return the material of a recipe.

    Raises:
        DataError: A file is missing or broken.
    """
    questions = _questions(options, seed)
    # Demonstrations of the development set are of the development set, as in the published script.
    dev_pairs = _pairs(questions.dev, options, "dev")[:DEV_EXAMPLES]
    train_pairs = _pairs(questions.train, options, seed)
    left_out = len(questions.train) - len(train_pairs)
    return Material(
        train=train_pairs,
        dev=dev_pairs,
        gates={DEV: dev_pairs},
        facts={**questions.checksums, "left_out": left_out},
        score=_score,
        lossy=True,
        max_gen_toks=64,
    )


def _score(answer: str, target: str) -> float:
    return float(is_right(answer, target))


class Question(NamedTuple):
    """A question about a text."""

    question: str
    context: str
    answer: str


@dataclass(frozen=True)
class _Questions:
    """Questions to train on, those of the development set, and the checksums of their files."""

    train: list[Question]
    dev: list[Question]
    checksums: dict[str, str]


def _questions(options: Options, seed: int) -> _Questions:
    if options.train is None or options.dev is None:
        dev = list(islice(generated("dev", options.facts), DEV_EXAMPLES))
        dev_texts = {question.context for question in dev}
        drawn_questions = generated(seed, options.facts)
        new = (question for question in drawn_questions if question.context not in dev_texts)
        return _Questions(list(islice(new, options.generated)), dev, {})
    train_file = Path(options.train).expanduser()
    dev_file = Path(options.dev).expanduser()
    train = _read_short(train_file)
    dev = _read_short(dev_file)
    return _Questions(train, dev, {"train": sha256_of(train_file), "dev": sha256_of(dev_file)})


def _read_short(file: Path) -> list[Question]:
    return [question for question in read(file) if len(question.context) < LONGEST_CONTEXT]


def _pairs(questions: Sequence[Question], options: Options, seed: object) -> list[Pair]:
    """Return prompts with demonstrations, never a question before itself, and answers.

    A question that has too few demonstrations is left out.
    """
    separator = "\n" if options.format == "input" else " "
    pairs = []
    for number, question in enumerate(questions):
        rng = random.Random(f"demonstrations, {seed}, {number}")
        count = rng.randint(*SHOWN)
        demonstrations = []
        for demonstration in _draw_demonstrations(question, questions, count, rng):
            demonstrations.append(f"{_prompt(demonstration, options)} {demonstration.answer}")
        is_short = sum(map(len, demonstrations)) <= LONGEST_SHOWN
        if len(demonstrations) == count and is_short:
            prompt = separator.join([*demonstrations, _prompt(question, options)])
            pairs.append((prompt, question.answer))
    return pairs


def _draw_demonstrations(
    question: Question, questions: Sequence[Question], count: int, rng: random.Random
) -> list[Question]:
    """Draw different questions, without copies of the question; sometimes fewer than ``count``."""
    shown_numbers: list[int] = []
    for _ in range(count):
        # One, and spares for those that are shown already, the question and its copies.
        candidates = rng.sample(range(len(questions)), min(len(questions), len(shown_numbers) + 4))
        for number in candidates:
            if number not in shown_numbers and not _is_copy(questions[number], question):
                shown_numbers.append(number)
                break
    return [questions[number] for number in shown_numbers]


def _is_copy(question: Question, original: Question) -> bool:
    return question.question == original.question and question.context == original.context


def _prompt(question: Question, options: Options) -> str:
    if options.format == "input":
        return framed(f"{question.question} {question.context}")
    return f"Question: {question.question} Context: {question.context} Answer:"


class _Answer(BaseModel):
    text: str


class _QuestionWithAnswers(BaseModel):
    question: str
    answers: Annotated[list[_Answer], Field(min_length=1)]


class _Paragraph(BaseModel):
    context: str
    qas: list[_QuestionWithAnswers]


class _Article(BaseModel):
    paragraphs: list[_Paragraph]


class _Squad(BaseModel):
    data: list[_Article]


def read(file: Path) -> list[Question]:
    """Return the questions of a file in SQuAD's JSON; the first of several answers counts.

    Raises:
        DataError: It cannot be read, or is in another format; the key is named.
    """
    try:
        content = _Squad.model_validate_json(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise DataError(f"{file}: not in SQuAD's JSON: {first_problem(error)}") from None
    questions = []
    for article in content.data:
        for paragraph in article.paragraphs:
            for question in paragraph.qas:
                questions.append(
                    Question(
                        _on_one_line(question.question),
                        _on_one_line(paragraph.context),
                        _on_one_line(question.answers[0].text),
                    )
                )
    return questions


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


class _FactTemplate(TypedDict):
    """A sentence, and questions about it with their answers; all have the same blanks."""

    sentence: str
    questions: dict[str, str]


def generated(seed: object, facts: int) -> Iterator[Question]:
    """Yield questions without end, each about a text of so many facts.

    No two facts of a text fill a blank with the same word.
    """
    rng = random.Random(f"generated questions, {seed}")
    content = embedded(__file__, "mini_reading.yaml")
    words: dict[str, list[str]] = content["words"]
    templates: list[_FactTemplate] = content["facts"]
    while True:
        drawn_words = {blank: rng.sample(fillers, facts) for blank, fillers in words.items()}
        chosen = [rng.choice(templates) for _ in range(facts)]
        sentences = []
        for number, template in enumerate(chosen):
            sentences.append(template["sentence"].format(**_words_of_fact(drawn_words, number)))
        fact = rng.randrange(facts)
        question, answer = rng.choice(list(chosen[fact]["questions"].items()))
        fillers = _words_of_fact(drawn_words, fact)
        yield Question(question.format(**fillers), " ".join(sentences), answer.format(**fillers))


def _words_of_fact(drawn_words: Mapping[str, Sequence[str]], number: int) -> dict[str, str]:
    return {blank: words[number] for blank, words in drawn_words.items()}
