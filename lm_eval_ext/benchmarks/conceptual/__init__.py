"""Conceptual few-shot: do models learn a concept from demonstrations? (Štefánik & Kadlčík 2023).

``load`` reads one of the datasets (``glue``, ``openbookqa``, ``hotpotqa``, ``worldtree``, the
embedded ``mini``) into ``records`` and renders ``prompt``'s templates; ``task`` shows each sample
the demonstrations that ``demonstrations`` chooses. ``answers`` reads an answer out of a response,
and ``matching`` compares it with the right one; ``score`` makes a document's rows of the scores,
with those of copying the demonstrations' answers. ``training`` has the material of Tk-QA.
"""
