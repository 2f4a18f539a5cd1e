"""What a figure lacks, in words: models that are not drawn, and single values of those that are."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from lm_eval_ext.text import named_briefly


@dataclass(frozen=True)
class Gap:
    """What a figure lacks of a model.

    Attributes:
        model: The model's label.
        task: The task whose values are missing.
        part: Where in the figure one value is missing; "" if all of the task's are.
        reason: Why it is missing.
    """

    model: str
    task: str
    part: str
    reason: str


@dataclass
class Gaps:
    """What a figure lacks.

    Attributes:
        of_models: What it lacks of models.
        of_tasks: Why it lacks values of all models.
    """

    of_models: list[Gap] = field(default_factory=list)
    of_tasks: list[str] = field(default_factory=list)

    def lines(self, drawn_models: Collection[str]) -> list[str]:
        """Return what is missing, each once, after the models that lack it.

        Args:
            drawn_models: The models that have a value in the figure. A line about one of these
                says which of its values are missing.
        """
        subjects_without: dict[str, list[str]] = {}
        for problem in self.of_tasks:
            subjects_without[problem] = []
        for gap in self.of_models:
            if gap.model not in drawn_models:
                subjects = subjects_without.setdefault(gap.reason, [])
                if gap.model not in subjects:
                    subjects.append(gap.model)
        lines = []
        for reason, subjects in subjects_without.items():
            lines.append(f"{named_briefly(subjects)}: {reason}" if subjects else reason)
        lines += self._lines_of_values(drawn_models)
        return lines

    def _lines_of_values(self, drawn_models: Collection[str]) -> Iterator[str]:
        """Yield which values of the models that are drawn are missing, and why."""
        parts_of: dict[tuple[str, str, str], list[str]] = {}
        for gap in self.of_models:
            if gap.model in drawn_models:
                parts = parts_of.setdefault((gap.model, gap.task, gap.reason), [])
                if gap.part and gap.part not in parts:
                    parts.append(gap.part)
        for (model, task, reason), parts in parts_of.items():
            values = f"values of {model} on {task}"
            if parts:
                values += f" ({named_briefly(parts)})"
            yield f"{values}: {reason.removeprefix(f'{task}: ')}"
