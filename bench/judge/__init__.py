"""How well MAGNIFICo's databases judge: cases that the package has never seen, and their table.

``python -m bench.judge`` measures. The package must not import this folder, and nobody tunes the
package on it: :mod:`.neighbours` and :mod:`.slips` make wrong queries, :mod:`.rewrites` right ones,
:mod:`.draw` random databases that tell which wrong queries are none.
"""
