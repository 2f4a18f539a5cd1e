"""Facts about a model that its file may state: size, family, weights, licence, date and price."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lm_eval_ext.results.files import ResultsFile, Tokens, model_file
from lm_eval_ext.text import one_line, quantity

_Text = Annotated[str, AfterValidator(one_line)]
_Price = Annotated[float, BeforeValidator(quantity), Field(ge=0)]
_DATE = r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$"


class ModelFacts(BaseModel):
    """The facts that are known of a model; "" and None where nothing is.

    ``size`` is the number of parameters (below a thousand it would rather be one of billions or
    millions without its unit); ``date`` is ISO 8601, with or without month and day; ``price`` is
    that of a million tokens of input and of output.
    """

    model_config = ConfigDict(frozen=True)

    size: Annotated[float, BeforeValidator(quantity), Field(ge=1000)] | None = Field(
        default=None, description="the number of parameters, such as 7B, 350M or 6738415616"
    )
    family: _Text = Field(
        default="", description="the name that models of one kind share, such as Llama 3"
    )
    weights: Literal["", "open", "closed"] = Field(default="", description="open or closed")
    licence: _Text = Field(default="", description="the licence of the weights")
    date: Annotated[str, BeforeValidator(str), Field(pattern=_DATE)] = Field(
        default="", description="when it was published: 2024, 2024-07 or 2024-07-23"
    )
    price: tuple[_Price, _Price] | None = Field(
        default=None,
        description="input and output in one currency per million tokens, such as [0.15, 0.6]",
    )

    def cost(self, tokens: Tokens | None) -> float | None:
        """Return the cost of these tokens in the currency of the price; None if it isn't known."""
        if self.price is None or tokens is None:
            return None
        input_price, output_price = self.price
        return (input_price * tokens.input + output_price * tokens.output) / 1_000_000


KEYS = {name: str(field.description) for name, field in ModelFacts.model_fields.items()}
"""The keys, with their meaning."""


def model_facts(results: ResultsFile) -> ModelFacts:
    """Return the facts in the model's file; a wrong value counts as none.

    A size that isn't stated is the number of parameters that lm-eval counted, if it did.
    """
    counted = {"size": results.settings.get("model_num_parameters")}
    values = {**counted, **model_file(results)}
    legal = {key: values[key] for key in KEYS.keys() & values if is_legal(key, values[key])}
    return ModelFacts.model_validate(legal)


def is_legal(key: str, value: object) -> bool:
    """Return whether one of the keys may have this value."""
    try:
        ModelFacts.model_validate({key: value})
    except ValidationError:
        return False
    return True
