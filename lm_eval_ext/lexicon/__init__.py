"""Drawing new words from a seed."""

from lm_eval_ext.lexicon.words import SHAPES, WORDLIKE, Shape, draw, draw_words

__all__ = ["SHAPES", "WORDLIKE", "Shape", "draw", "draw_words"]
