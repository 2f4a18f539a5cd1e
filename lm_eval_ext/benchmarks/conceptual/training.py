"""Material of in-context training on questions about texts, as of the paper's Tk-QA (section 3.3).

Each prompt has demonstrations before its question: random ones, or some that share its concept,
which is here its category. The published script that is nearest to the paper's (github
MIR-MU/CoAT, ``training/``) says how many and how long.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual import reading
from lm_eval_ext.benchmarks.conceptual.answers import is_right
from lm_eval_ext.benchmarks.conceptual.prompt import framed
from lm_eval_ext.benchmarks.conceptual.reading import Question
from lm_eval_ext.reading import Strict, checked
from lm_eval_ext.training.material import Material, Pair

if TYPE_CHECKING:
    from lm_eval_ext.benchmarks.conceptual.difficulty import Judge

DEV = "dev"
"""The gate: the share of whole answers that are right, on the development set."""


class Options(Strict):
    """What a recipe's ``data`` may say.

    Attributes:
        train: A file with questions (:mod:`.reading`); ``dev``: another one, for development.
        generated: Instead of files, so many generated questions, about texts of ``facts``.
        demonstrations: ``random``; ``category``, random ones of the question's category; or
            ``hardest``, of ``candidates`` of its category the one with which the model ``judge``
            gives the right answer the least probability, one after the other.
        judge: The folder of that model.
        least: Fewest demonstrations of a prompt; ``most``.
        draws: How often each question comes, with other demonstrations.
        longest_context: Questions with a text of so many characters are left out.
        longest_shown: So are prompts whose demonstrations have more.
        dev_examples: Most questions of the development set.
        format: ``question`` as the published script writes prompts, or ``input`` as the tasks.
    """

    train: str | None = None
    dev: str | None = None
    generated: int = Field(0, ge=0)
    facts: int = Field(2, ge=1, le=7)
    demonstrations: Literal["random", "category", "hardest"] = "random"
    judge: str = ""
    candidates: int = Field(64, ge=1)
    least: int = Field(2, ge=1)
    most: int = Field(5, ge=1)
    draws: int = Field(1, ge=1)
    longest_context: int = Field(2000, ge=1)
    longest_shown: int = Field(8000, ge=1)
    dev_examples: int = Field(200, ge=1)
    format: Literal["question", "input"] = "question"

    @model_validator(mode="after")
    def _fit(self) -> "Options":
        if bool(self.generated) == bool(self.train) or bool(self.train) != bool(self.dev):
            raise ValueError("give train and dev, files with questions, or generated")
        if (self.demonstrations == "hardest") != bool(self.judge):
            raise ValueError("judge is for demonstrations: hardest, which need it")
        if self.most < self.least:
            raise ValueError(f"least is {self.least}, and most only {self.most}")
        return self


def prepare(data: Mapping[str, Any], seed: int) -> Material:
    """The material of a recipe.

    Raises:
        OptionError: An option is wrong, or two of them do not fit.
        DataError: A file is missing or broken.
    """
    options = checked(Options, data, "recipe, data")
    train, dev, facts = _questions(options, seed)
    # Demonstrations of the development set are of the development set, as in the published script.
    plain = "random" if options.demonstrations == "random" else "category"
    asked = choose(dev, options.model_copy(update={"draws": 1, "demonstrations": plain}), "dev")
    held = _pairs(dev, asked[: options.dev_examples], options)
    if options.demonstrations == "hardest":
        from lm_eval_ext.benchmarks.conceptual.difficulty import Judge, kept

        key = [options.model_dump(), seed, facts]
        judge = Path(options.judge)
        chosen = kept(judge, key, lambda: choose(train, options, seed, Judge(judge)))
    else:
        chosen = choose(train, options, seed)
    pairs = _pairs(train, chosen, options)
    facts["left_out"] = len(train) * options.draws - len(pairs)
    return Material(
        pairs,
        held,
        {DEV: held},
        facts,
        score=lambda answer, target: float(is_right(answer, target)),
        lossy=True,
    )


def _questions(
    options: Options, seed: int
) -> tuple[list[Question], list[Question], dict[str, Any]]:
    """Questions to train on, and those of the development set."""
    if options.train is None or options.dev is None:
        held = list(islice(reading.generated("dev", options.facts), options.dev_examples))
        texts = {one.context for one in held}
        drawn = (one for one in reading.generated(seed, options.facts) if one.context not in texts)
        return list(islice(drawn, options.generated)), held, {}
    files = [Path(name).expanduser() for name in (options.train, options.dev)]
    train, dev = (
        [one for one in reading.read(file) if len(one.context) < options.longest_context]
        for file in files
    )
    return train, dev, dict(zip(("train", "dev"), map(sha256_of, files), strict=True))


Choices = list[tuple[int, list[int]]]
"""Places of questions, each with those of its demonstrations."""


def choose(
    questions: Sequence[Question], options: Options, seed: object, judge: "Judge | None" = None
) -> Choices:
    """Chooses demonstrations, never a question for itself; what has too few of them is left out."""
    by_category: dict[str, list[int]] = {}
    for place, one in enumerate(questions):
        by_category.setdefault(one.category, []).append(place)
    found: Choices = []
    for draw in range(options.draws):
        for place, one in enumerate(questions):
            rng = random.Random(f"demonstrations, {seed}, {draw}, {place}")
            count = rng.randint(options.least, options.most)
            alike = options.demonstrations != "random"
            pool = by_category[one.category] if alike else range(len(questions))
            shown: list[int] = []
            for _ in range(count):
                wanted = options.candidates if judge else 1
                spare = len(shown) + 3  # those that are shown already, the question and its copies
                drawn = rng.sample(pool, min(len(pool), wanted + spare))
                fresh = [n for n in drawn if n not in shown and questions[n][:2] != one[:2]]
                if not fresh:
                    break
                fresh = fresh[:wanted]
                if judge:
                    tried = ([questions[n] for n in (*shown, new)] for new in fresh)
                    prompts = [_prompt(one, some, options) for some in tried]
                    shown.append(fresh[judge.hardest(prompts, one.answer)])
                else:
                    shown.append(fresh[0])
            long = sum(len(_told(questions[n], options)) for n in shown) > options.longest_shown
            if len(shown) == count and not long:
                found.append((place, shown))
    return found


def _pairs(questions: Sequence[Question], chosen: Choices, options: Options) -> list[Pair]:
    return [
        (_prompt(questions[place], [questions[n] for n in shown], options), questions[place].answer)
        for place, shown in chosen
    ]


def _prompt(one: Question, shown: Sequence[Question], options: Options) -> str:
    between = "\n" if options.format == "input" else " "
    return between.join([*(_told(other, options) for other in shown), _asked(one, options)])


def _told(one: Question, options: Options) -> str:
    return f"{_asked(one, options)} {one.answer}"


def _asked(one: Question, options: Options) -> str:
    if options.format == "input":
        return framed(f"{one.question} {one.context}")
    return f"Question: {one.question} Context: {one.context} Answer:"
