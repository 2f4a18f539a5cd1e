"""COGS with controlled lexical exposure: does generalization survive unseen words?

(Kim, Linzen and Smolensky 2022.)
"""
