"""Experiments: every table and figure of the paper, each a table of settings over one cached pipeline.

`python -m experiments damt --stage run …` does the translating and needs torch and transformers alone;
`--stage report` scores what came out, where sacreBLEU is installed.
"""
