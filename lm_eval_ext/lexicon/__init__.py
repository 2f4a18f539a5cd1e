"""Drawing new words from a seed."""

from lm_eval_ext.lexicon.strings import SHAPES, Shape, draw, draw_words

__all__ = ["SHAPES", "Shape", "draw", "draw_words"]
