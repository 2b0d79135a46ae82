"""Rows through a cluster of processes on this machine: cluster.py ray|spark MODEL FOLDER. One worker is killed in the middle of its rows; with spark
an executor, too. Prints a JSON object: how many rows came back, how often each process was killed, how many processes computed.

In: rows 0 .. ROWS-1, each an image made of its number. Every row must come back once, with the bits of a run in this process.
"""
import json
import os
import signal
import sys
import time

import numpy as np

KIND, MODEL, FOLDER = sys.argv[1:4]
ROWS, BATCH = 6000, 50


def images(ids):
    """Rows of 64 numbers, made of their ids."""
    return ((np.asarray(ids, np.int64)[:, None] * 37 + np.arange(64) * 11) % 17).astype(np.float32) / 16


def once(name):
    """Whether this is the first process that asks."""
    try:
        os.close(os.open(os.path.join(FOLDER, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return True
    except FileExistsError:
        return False


def present():
    with open(os.path.join(FOLDER, f"worker-{os.getpid()}"), "w"):
        pass


def fall(name, who):
    """Kills a process, the first time; leaves no time to go on."""
    if once(name):
        os.kill(who, signal.SIGKILL)
        time.sleep(60)


def parent(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def with_ray():
    import ray

    import ingot.ray

    class Mortal(ingot.ray.Predictor):
        def __call__(self, batch):
            out = super().__call__(batch)
            present()
            if ROWS // 2 in batch["id"]:  # computed, and not yet handed over
                fall("killed-worker", os.getpid())
            return out

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20, _temp_dir=os.environ.get("RAY_FOLDER"))
    ray.data.DataContext.get_current().enable_progress_bars = False
    ds = ray.data.range(ROWS, override_num_blocks=12).map_batches(lambda b: {"id": b["id"], "image": images(b["id"])}, batch_size=BATCH)
    ds = ds.map_batches(Mortal, fn_constructor_args=(MODEL,), fn_constructor_kwargs={"keep": True, "max_batch": BATCH, "march": "scalar"}, batch_size=BATCH, concurrency=3)
    rows = [(r["id"], r["probability"]) for r in ds.select_columns(["id", "probability"]).take_all()]
    ray.shutdown()
    return rows


def with_spark():
    from pyspark.sql import SparkSession

    import ingot.spark
    spark = (SparkSession.builder.master("local-cluster[2,2,1024]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
             .config("spark.driver.bindAddress", "127.0.0.1").config("spark.executor.memory", "1g").config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH)
             .config("spark.log.level", "ERROR").getOrCreate())
    predict = ingot.spark.mapper(MODEL, max_batch=BATCH, keep=["id"], march="scalar")

    def mortal(frames):
        for frame in predict(frames):
            present()
            if ROWS // 2 in set(frame["id"]):
                fall("killed-worker", os.getpid())
            if ROWS // 4 in set(frame["id"]):
                fall("killed-executor", parent(parent(os.getpid())))
            yield frame

    table = spark.range(0, ROWS, 1, 12)
    shaped = table.mapInPandas(lambda frames: (f.assign(image=list(images(f["id"]))) for f in frames), "id long, image array<float>")
    rows = [(r["id"], r["probability"]) for r in shaped.mapInPandas(mortal, "id long, probability array<float>").collect()]
    other = shaped.withColumn("probability", ingot.spark.udf(MODEL, "array<float>", max_batch=BATCH, march="scalar")("image")).select("id", "probability")
    again = {r["id"]: r["probability"] for r in other.collect()}
    assert len(again) == ROWS and all(again[i] == p for i, p in rows), "pandas_udf gives something else than mapInPandas"
    spark.stop()
    return rows


def main():
    import ingot
    rows = {"ray": with_ray, "spark": with_spark}[KIND]()
    ids = [int(i) for i, _ in rows]
    net = ingot.compile(MODEL, max_shapes={"image": (BATCH, 1, 8, 8)}, march="scalar")
    wrong = 0
    by_id = dict(rows)
    for start in range(0, ROWS, BATCH):
        some = range(start, start + BATCH)
        y = net(images(some).reshape(-1, 1, 8, 8))
        wrong += sum(i not in by_id or not np.array_equal(np.asarray(by_id[i], np.float32), row) for i, row in zip(some, y))
    there = os.listdir(FOLDER)
    print(json.dumps({"rows": len(ids), "different": len(set(ids)), "wrong": wrong, "killed": sorted(n for n in there if n.startswith("killed-")),
                      "workers": sum(n.startswith("worker-") for n in there)}))


if __name__ == "__main__":
    main()
