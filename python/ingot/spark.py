"""Models in Spark: functions for mapInPandas, and user-defined functions over columns.

    df.mapInPandas(ingot.spark.mapper("model.onnx"), "id long, probability array<float>")
    df.withColumn("probability", ingot.spark.udf("model.onnx", "array<float>")("image"))

In: columns of numbers, or of arrays of numbers. Out: columns of the same kinds; results of more than two axes as the numbers of a row, flattened in
order. Every Python worker compiles the model once; a task that is run again, because its worker was lost, gives the same rows.
"""
from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping

import numpy as np

from ._net import Source
from ._rows import Columns, Rows


def _column(y: np.ndarray) -> list[Any]:
    """Returns one value per row: a number, or a list of numbers."""
    return y.tolist() if y.ndim < 2 else [row.reshape(-1).tolist() for row in y]


def mapper(model: Source, inputs: Mapping[str, Columns] | None = None, outputs: Mapping[str, str] | None = None, keep: Any = True,
           max_batch: int = 256, ship: bool = False, **options: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns a function for DataFrame.mapInPandas. keep: columns kept next to the results: all (True), none, or a list of names."""
    rows = Rows(model, inputs, outputs, max_batch, ship, **options)

    def apply(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas
        for frame in frames:
            stay = list(frame.columns) if keep is True else list(keep or ())
            results = rows.predict({name: frame[name].to_numpy() for name in frame.columns})
            yield pandas.DataFrame({**{name: frame[name].to_numpy() for name in stay},
                                    **{name: _column(y) for name, y in results.items()}})
    return apply


def udf(model: Source, returns: str = "array<float>", output: str | None = None, max_batch: int = 256, ship: bool = False,
        **options: Any) -> Any:
    """Returns a function of one column per input, in their order. returns: its type in Spark's notation; output: the output it returns."""
    import pandas
    from pyspark.sql.functions import pandas_udf
    rows = Rows(model, None, {output: "y"} if output else None, max_batch, ship, **options)

    def predict(*columns):  # type: ignore[no-untyped-def]
        import pandas
        names = [p.name for p in rows.net()[0].inputs]
        results = rows.predict({name: column.to_numpy() for name, column in zip(names, columns)})
        return pandas.Series(_column(next(iter(results.values()))))

    # Spark evaluates the annotations, and this module has not imported pandas yet
    predict.__annotations__ = {"columns": pandas.Series, "return": pandas.Series}
    return pandas_udf(predict, returns)
