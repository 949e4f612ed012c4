"""The experiments of the paper, run again on recorded outputs of real models.

`python -m experiments all` writes tables, figures and claims into build/paper, and
`python -m experiments page` writes docs/paper.md. The paper is Chidambaram and Ge,
*Reassessing How to Compare and Improve the Calibration of Machine Learning Models*
(ICLR 2025).
"""
