"""COGS with controlled lexical exposure: does generalization survive unseen words?

(Kim, Linzen and Smolensky 2022.) So far: the lexicons and the substitution of the key words.
"""
