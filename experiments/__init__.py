"""Experiments: every table and figure of the paper, each one object over one cached pipeline.

`python -m experiments damt --stage run …` does the translating, `--stage report` scores and draws what came
out, on another machine if need be.
"""

NAMES = (
    *("damt", "mdmt", "tradeoff", "robustness", "unseen", "ablation", "k", "dropout", "kernels", "recipes"),
    *("seeds", "sizes", "lengths", "speed", "pos", "wsd", "online"),
)
"""Of all experiments, so that `--help` need not import them (`catalogue`)."""
