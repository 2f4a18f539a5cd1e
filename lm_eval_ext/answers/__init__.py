"""From what a model wrote to its answer: the same stages for every benchmark.

1. *Channel.* If a response has channels, only the final one counts:
   ``<|channel|>final<|message|>...`` (:mod:`.tokens`).
2. *Reasoning.* What stands in thinking tags is no answer (:mod:`.reasoning`).
3. *Special tokens.* Those that open the model's turn are removed; the next one ends the turn
   (:mod:`.tokens`).
4. *Invisible characters* are removed (:mod:`.tokens`).
5. *Grammar.* The benchmark decides which stretch of the rest is the answer. Most benchmarks derive
   :class:`.choice.CandidateGrammar`, which offers them candidates: what is announced ("The answer
   is ..."), tagged, boxed, in JSON, fenced or alone in a line (:mod:`.candidates`). Markup is
   taken off a candidate layer by layer (:mod:`.markdown`).

:class:`.reader.AnswerReader` runs the stages and lists the steps for a response (``explain``).

To add a benchmark:

- derive ``CandidateGrammar`` and write ``accept(text)``, which returns the answer if a text is one,
  or give :class:`.formal.FormalGrammar` a parser; a benchmark with rules of its own writes a class
  with ``find(text)``;
- put the benchmark's words (labels such as "logical form") into ``phrases.yaml`` beside it, and
  read it with :func:`.phrases.read_phrases`;
- return ``AnswerReader(ReaderOptions(grammar))`` from the task's hook ``answer_reader``.

The package knows no benchmark. Responses are hostile input: every function takes time that is
linear in the text, and raises nothing.
"""
