"""Logistic regression by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 50


def logistic_regression(
    rows: NDArray[Any], labels: NDArray[Any], counts: NDArray[Any] | None = None, ridge: float = 0.0
) -> Floats:
    """Returns the bias and the weight of each column of `rows`, (n, columns), for labels of 0 or 1, (n,).

    `counts` weigh the rows; `ridge` is the L2 penalty of the weights, not of the bias.
    """
    design = np.column_stack([np.ones(len(rows)), rows])
    counts = np.ones(len(rows)) if counts is None else counts
    penalty = np.diag([0.0, *[ridge] * (design.shape[1] - 1)])
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (counts * (likely - labels)) + penalty @ weights
        hessian = (design * (counts * likely * (1 - likely))[:, None]).T @ design + penalty
        weights -= np.linalg.solve(hessian, gradient)
    return weights
