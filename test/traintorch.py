#!/usr/bin/env python3
"""Training steps compared with PyTorch: the same network, weights and batch, and the losses of a few steps.

PyTorch computes in double, because its steps in f32 may differ from those in double by more than the tolerance; the script
prints by how much.

usage: traintorch.py --ingot build/ingot [--only resnet18]      run by `make torch-train`, with the Python of build/torch
"""
import argparse
import copy
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import nn

STEPS, LIMIT = 4, 1e-4


class Encoder(nn.Module):
    """BERT, very small: words and places, two layers, a class from the first place."""

    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(100, 64), nn.Parameter(torch.randn(12, 64) * 0.1)
        layer = nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(64, 4)

    def forward(self, x):
        return self.out(self.layers(self.word(x) + self.place)[:, 0])


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=10), torch.randn(4, 3, 64, 64)


NETS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)), torch.randn(32, 784)),
    "lenet": lambda: (nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)), torch.randn(8, 1, 28, 28)),
    "resnet18": resnet18,
    "bert-tiny": lambda: (Encoder(), torch.randint(0, 100, (4, 12))),
}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
RATES = {"sgd": 0.01, "adam": 0.001}  # a tenth where the loss would fall so fast that rounding is amplified


def losses(model, x, label, optimizer, rate, kind):
    model = copy.deepcopy(model).to(kind).train()
    x = x.to(kind) if x.is_floating_point() else x
    step, told = OPTIMIZERS[optimizer](model.parameters(), lr=rate), []
    for _ in range(STEPS):
        step.zero_grad()
        loss = nn.functional.cross_entropy(model(x), label)
        loss.backward()
        step.step()
        told.append(loss.item())
    return told


def apart(got, want):
    return max(abs(a - b) / abs(b) for a, b in zip(got, want))


def compare(ingot, name, optimizer):
    torch.manual_seed(1)
    model, x = NETS[name]()
    model.train()
    with torch.no_grad():
        classes = model(x).shape[1]
    model.eval()
    torch.manual_seed(2)
    label = torch.randint(0, classes, (x.shape[0],))
    rate = RATES[optimizer] * (0.1 if name == "resnet18" else 1)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "net.onnx")
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, dynamo=False, do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING, input_names=["x"], opset_version=17)
        # the running means of the export above have moved; losses in training do not read them
        single, want = (losses(model, x, label, optimizer, rate, kind) for kind in (torch.float32, torch.float64))
        np.savez(os.path.join(tmp, "in.npz"), x=x.numpy(), label=label.numpy(), rate=np.float32(rate))
        got = []
        for k in range(1, STEPS + 1):
            out = os.path.join(tmp, "out.npz")
            subprocess.run([ingot, "run", path, "--train", f"loss=cross_entropy,optimizer={optimizer}", "--inputs", os.path.join(tmp, "in.npz"), "--steps", str(k),
                            "--engine", "vm", "--march", "native", "-o", out, "--quiet"], check=True)
            got.append(float(np.load(out)["loss"]))
    worst = apart(got, want)
    print(f"{name:10} {optimizer:5} loss {want[0]:.6f} -> {want[-1]:.6f}, largest relative difference {worst:.1e} (PyTorch in single: {apart(single, want):.1e})", flush=True)
    return worst < LIMIT


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ingot", required=True)
    p.add_argument("--only", default="")
    a = p.parse_args()
    ok = [compare(a.ingot, n, o) for n in NETS for o in OPTIMIZERS if a.only in n]
    sys.exit(0 if ok and all(ok) else 1)


main()
