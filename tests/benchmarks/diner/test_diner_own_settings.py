"""A task refuses options that would turn it into another task."""

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.errors import OptionError


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        # The gold name's help under the honest name; no selection at all was the oracle's, too.
        ("diner_mini_icl", "diner_demonstrations", "oracle"),
        ("diner_mini_icl", "diner_demonstrations", None),
        ("diner_mini_icl_oracle", "diner_demonstrations", "instruction"),
        ("diner_mini_name", "diner_demonstrations", "oracle"),
        # Prompts that the task does not have, or answers that it does not read.
        ("diner_mini_name", "diner_ask", "components"),
        ("diner_mini_name", "diner_ask", "cp"),
        ("diner_mini_components", "diner_ask", "name"),
        ("diner_mini_cp", "diner_ask", "name"),
        ("diner_mini_icl", "diner_ask", "cp"),
    ],
)
def test_no_task_is_another_one_under_its_name(name: str, option: str, value: str | None) -> None:
    with pytest.raises(OptionError, match=f"{option} is {value!r}, but {name} has .* leave it out"):
        TaskManager(
            include_defaults=False, include_path=tasks_folder(), metadata={option: value}
        ).load(name)
