"""Networks that come from files: quantized, half precision, the Sense graph, timm, and the real models that `make test` fetches.

Half precision: all floats of the graph are f16 or bf16, inputs and outputs stay f32 and are cast, as converters leave them.
The int8 networks are the float ones through ONNX Runtime's own quantizer: QDQ form, activations u8, weights s8 per channel, ranges from four
random images. Real models keep their graphs; only the shapes of their inputs are fixed to those of the data they are measured with.
"""
import json
import os
import subprocess
import sys

import numpy as np
import onnx

from netlib import NETS, infer, itemsize, macs

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(os.path.dirname(HERE), "build", "models")


def finish(m, feed, path, count=None):
    """Writes the model, its inputs and its facts; count: multiply-adds, if known."""
    base = path[:-5]
    if count is None:
        try:
            count = macs(m, infer(m))
        except Exception:  # control flow and old operators cannot be counted
            count = 0
    facts = {"name": os.path.basename(base), "macs": count, "nodes": len(m.graph.node),
             "weight_bytes": sum(int(np.prod(i.dims)) * itemsize(i.data_type) for i in m.graph.initializer)}
    np.savez(base + ".npz", **feed)
    with open(base + ".json", "w") as f:
        json.dump(facts, f)
    onnx.save(m, path + ".tmp")
    os.replace(path + ".tmp", path)


def quantized(of, form="QDQ", weights="QInt8"):
    """form: QDQ, QOperator or dynamic (activations quantized at run time)."""
    def write(path, make):
        import logging

        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
        logging.disable(logging.WARNING)
        source = make(of)
        with np.load(source[:-5] + ".npz") as z:
            feed = {k: z[k] for k in z.files}
        rng = np.random.default_rng(5)
        (name, first), = feed.items()

        class Images(CalibrationDataReader):
            left = [{name: first}] + [{name: rng.standard_normal(first.shape, np.float32)} for _ in range(3)]

            def get_next(self):
                return self.left.pop() if self.left else None

        if form == "dynamic":
            quantize_dynamic(source, path + ".q", weight_type=QuantType[weights])
        else:
            quantize_static(source, path + ".q", Images(), quant_format=QuantFormat[form], per_channel=weights == "QInt8",
                            activation_type=QuantType.QUInt8, weight_type=QuantType[weights])
        with open(source[:-5] + ".json") as f:
            count = json.load(f)["macs"]
        finish(onnx.load(path + ".q"), feed, path, count)
        os.remove(path + ".q")
    return write


def narrowed(of, kind):
    """kind: FLOAT16 or BFLOAT16."""
    def write(path, make):
        source, to = make(of), onnx.TensorProto.DataType.Value(kind)
        m = onnx.load(source)
        g = m.graph
        wide = {n.input[k] for n in g.node if n.op_type == "Resize" for k in (1, 2) if k < len(n.input)}  # inputs are f32 for every data type
        for i in g.initializer:
            if i.data_type == onnx.TensorProto.FLOAT and i.name not in wide:
                i.CopyFrom(onnx.helper.make_tensor(i.name, to, i.dims, onnx.numpy_helper.to_array(i).astype(onnx.helper.tensor_dtype_to_np_dtype(to)).tobytes(), raw=True))
        for n in g.node:
            for a in n.attribute:
                if n.op_type == "Cast" and a.name == "to" and a.i == onnx.TensorProto.FLOAT:
                    a.i = to
                elif a.type == onnx.AttributeProto.TENSOR and a.t.data_type == onnx.TensorProto.FLOAT:
                    raise ValueError(f"{n.name}: a constant inside a node")
        floats = [v.name for v in g.input if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT]
        for n in g.node:
            n.input[:] = [x + "_narrow" if x in floats else x for x in n.input]
            n.output[:] = [x + "_narrow" if x in {o.name for o in g.output} else x for x in n.output]
        first = [onnx.helper.make_node("Cast", [x], [x + "_narrow"], to=to) for x in floats]
        last = [onnx.helper.make_node("Cast", [o.name + "_narrow"], [o.name], to=onnx.TensorProto.FLOAT) for o in g.output]
        nodes = [*first, *g.node, *last]
        del g.node[:], g.value_info[:]
        g.node.extend(nodes)
        with np.load(source[:-5] + ".npz") as z, open(source[:-5] + ".json") as f:
            finish(m, {k: z[k] for k in z.files}, path, json.load(f)["macs"])
    return write


def timm(name):
    def write(path, make):
        python = os.path.join(os.path.dirname(MODELS), "torch", "bin", "python")
        if not os.path.exists(python):
            raise FileNotFoundError(f"{name}: no PyTorch; `make torch` fetches it")
        subprocess.run([python, os.path.join(HERE, "mktimm.py"), name, path + ".t"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finish(onnx.load(path + ".t"), {"image": np.random.default_rng(5).standard_normal((1, 3, 224, 224), np.float32)}, path)
        os.remove(path + ".t")
    return write


def sense(path, make):
    subprocess.run([sys.executable, os.path.join(HERE, "mksense.py"), path + ".s"], check=True)
    feed = {"x": np.random.default_rng(5).standard_normal((1, 128, 192, 1), np.float32)}
    finish(onnx.load(path + ".s"), feed, path)
    os.remove(path + ".s")


def real(model, case):
    def write(path, make):
        source, data = os.path.join(MODELS, model + ".onnx"), os.path.join(MODELS, "cases-0", case, "inputs.npz")
        if not os.path.exists(source) or not os.path.exists(data):
            raise FileNotFoundError(f"{model}: no model data; `make test` fetches it")
        with np.load(data) as z:
            feed = {k[2:]: z[k] for k in z.files if k.startswith("0/")}
        m = onnx.load(source)
        for i in m.graph.input:
            if i.name in feed:
                i.type.tensor_type.ClearField("shape")
                for n in feed[i.name].shape:
                    i.type.tensor_type.shape.dim.add().dim_value = n
                i.type.tensor_type.shape.SetInParent()
        for o in m.graph.output:
            o.type.tensor_type.ClearField("shape")
        del m.graph.value_info[:]
        finish(m, feed, path)
    return write


def put(name, title, write, **facts):
    NETS[name] = dict(facts, file=write, title=title)


put("sense", "Sense graph", sense, at_least=(1.9, 1.25), aim=(2.2, 1.5), gmac=0.25)
put("resnet50-int8", "int8 QDQ ResNet-50 (u8 x s8 per channel)", quantized("resnet50"), at_least=(1.15, 1.1), aim=(1.4, 1.35), int8=True)
put("mobilenetv2-int8", "int8 QDQ MobileNetV2", quantized("mobilenetv2"), at_least=(1.25, 1.15), aim=(1.6, 1.5), int8=True)
put("resnet18-int8", "int8 QDQ ResNet-18 (u8 x s8 per channel)", quantized("resnet18"), int8=True)
put("resnet18-dynamic", "int8 ResNet-18, quantized while running", quantized("resnet18", "dynamic", "QUInt8"), int8=True)
put("efficientnet-u8u8", "int8 EfficientNet-B0 (QOperator, u8 x u8)", quantized("efficientnet-b0", "QOperator", "QUInt8"), int8=True)
put("vit-int8", "int8 QDQ ViT-B/16", quantized("vit-b16"), int8=True)
for of, what in (("resnet50", "ResNet-50"), ("mobilenetv2", "MobileNetV2"), ("convnext-t", "ConvNeXt-T"), ("bert-tiny", "BERT-tiny"), ("minilm", "MiniLM")):
    put(of + "-f16", "f16 " + what, narrowed(of, "FLOAT16"), half=True)
    put(of + "-bf16", "bf16 " + what, narrowed(of, "BFLOAT16"), half=True)
for name in ("resnetv2_50", "regnety_008", "mobilenetv4_conv_small", "efficientvit_b0", "fastvit_t8", "ghostnet_100", "mobilevit_s", "coat_lite_tiny", "levit_128s", "pvt_v2_b0"):
    put(name, name + " (timm)", timm(name))
put("silero-v6", "Silero VAD 6, one chunk", real("silero_vad_v6", "silero_vad_v6-noise-steps"))
put("magika", "Magika", real("magika", "magika-source"))
put("basic-pitch", "Basic Pitch", real("basic_pitch", "basic_pitch-noise"))
put("ppocr-cls", "PP-OCR angle classifier", real("ppocr_cls", "ppocr_cls-upright"))
put("ppocr-det", "PP-OCRv4 detection", real("ppocr_det", "ppocr_det-page"))
put("ppocr-rec", "PP-OCRv4 recognition", real("ppocr_rec", "ppocr_rec-text"))
