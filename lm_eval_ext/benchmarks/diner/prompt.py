"""Prompts about a recipe.

:data:`NAME_QUESTION` and the quotation marks around the instruction are the authors'; all other
wording is ours, except under ``authors``: models that they fine-tuned know only these questions.
"""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from collections.abc import Mapping, Sequence

NAME_QUESTION = "这个菜谱的菜名是什么？"

ASKED_KINDS = ("action", "flavour", "food")
"""Kinds of components, in the order of the questions."""

NONE = "无"
"""The answer that prompts suggest for "no such component"."""

OURS, AUTHORS = "ours", "authors"
"""The wordings of component questions, and of components that are stated before the name."""

_STATED = {
    "action": "这个菜谱的主要操作是",
    "flavour": "这个菜谱的主要风味是",
    "food": "这个菜谱的主要食材是",
}
QUESTIONS: Mapping[str, Mapping[str, str]] = {
    OURS: {
        "action": f"做这道菜最主要的烹饪方法叫什么？（没有就答“{NONE}”）",
        "flavour": f"这道菜最突出的味道是哪一种？（没有就答“{NONE}”）",
        "food": f"这道菜的主料是什么，或者做成了哪种主食、点心？（用逗号隔开，没有就答“{NONE}”）",
    },
    AUTHORS: {kind: f"{stated}什么？" for kind, stated in _STATED.items()},
}

LABELS: Mapping[str, str] = {"action": "烹饪方法", "flavour": "味道", "food": "主料或形式"}
"""The names of the kinds in compositional prompts."""

NAME_LABEL = "菜名"


def name_prompt(instruction: str) -> str:
    """Return the question for the name, in the authors' words."""
    return f"“{instruction}” {NAME_QUESTION}"


def component_prompts(instruction: str, wording: str) -> list[str]:
    """Return the questions for the components, in the order of :data:`ASKED_KINDS`."""
    return [f"“{instruction}” {QUESTIONS[wording][kind]}" for kind in ASKED_KINDS]


def given_components_prompt(
    instruction: str, components: Mapping[str, Sequence[str]], wording: str
) -> str:
    """Return the question for the name behind components that the model answered earlier.

    Kinds without components are not mentioned, as in the authors' code.
    """
    statements = []
    for kind in ASKED_KINDS:
        words = components[kind]
        if words and wording == AUTHORS:
            statements.append(f"{_STATED[kind]}{','.join(words)},")
        elif words:
            statements.append(f"{LABELS[kind]}：{'、'.join(words)}")
    if wording == AUTHORS:
        stated = "".join(statements)
    else:
        stated = "；".join(statements)
        if stated:
            stated += "。"
    return f"“{instruction}” {stated}{NAME_QUESTION}"


def one_prompt(instruction: str) -> str:
    """Return the question for components and name in four lines; the prompt begins the first."""
    lines = "、".join(f"“{LABELS[kind]}：”" for kind in ASKED_KINDS)
    return (
        f"“{instruction}”\n"
        f"先用三行写出{lines}（没有就写“{NONE}”），再用第四行“{NAME_LABEL}：”回答：{NAME_QUESTION}\n"
        f"{LABELS[ASKED_KINDS[0]]}："
    )
