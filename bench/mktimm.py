"""Exports a network of timm with torch: `build/torch/bin/python bench/mktimm.py NAME OUT.onnx` (224x224, random weights, without its training parts).

`make torch` installs that Python. Statistics of normalizations are those of a few random images, so that activations keep a size.
"""
import sys

import timm
import torch


def settle(model, size):
    """One pass in training mode, which sets the statistics of batch normalization."""
    for m in model.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
            m.momentum = 1.0
    with torch.no_grad():
        model.train()(torch.randn(4, 3, size, size))


def main():
    name, path = sys.argv[1:]
    torch.manual_seed(1)
    model, size = timm.create_model(name, pretrained=False), 224
    settle(model, size)
    with torch.no_grad():
        torch.onnx.export(model.eval(), (torch.randn(1, 3, size, size),), path, dynamo=False, opset_version=17, input_names=["image"], output_names=["classes"])


if __name__ == "__main__":
    main()
