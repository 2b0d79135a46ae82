"""Models in Ray Data: a class for map_batches.

    ds.map_batches(ingot.ray.Predictor, fn_constructor_args=("model.onnx",), batch_size=64, concurrency=4)

In: batches of columns. Out: the same columns, and columns of the results. Every actor compiles the model once."""
from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from ._net import Source
from ._rows import Columns, Rows


class Predictor:
    """inputs: maps names of inputs to columns (several are stacked) if they differ; outputs: maps names of outputs to columns and selects
    them; keep: keep the columns of the batch; ship: send the model as bytes. Other options are those of ingot.compile."""

    def __init__(self, model: Source, inputs: Mapping[str, Columns] | None = None, outputs: Mapping[str, str] | None = None,
                 keep: bool = True, max_batch: int = 256, ship: bool = False, **options: Any) -> None:
        self.rows, self.keep = Rows(model, inputs, outputs, max_batch, ship, **options), keep
        self.rows.net()

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {**(batch if self.keep else {}), **self.rows.predict(batch)}
