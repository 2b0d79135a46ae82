"""Networks through both exporters of torch, compiled to C and compared with ONNX Runtime: `make torch`.

Runs with the Python of build/torch (test/requirements-torch.txt): exporters.py [--only PATTERN,..] [--exporter dynamo|script]. Weights
are random, also the statistics of normalizations, which fresh networks have at 0 and 1; images are small where the network allows
it. Models stay in build/exporters, so that a second run exports nothing. Every line is a network and an exporter: agrees (with the
largest difference, in parts of the largest answer), DIFFERS, or what refused it: torch, ONNX Runtime, ingot or the C compiler.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import timm  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torchvision.models as tv  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from torch import nn  # noqa: E402

sys.path.append(os.path.join(ROOT, "test", "make"))
import oracle  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)  # kernels that no exporter knows
NEAR = 1e-4  # of the largest answer: random networks of 50 layers amplify the last bits


# ---- plain torch ----

def norm_relu(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.a, self.b, self.c = norm_relu(3, c), norm_relu(c, 2 * c), norm_relu(2 * c, 4 * c)
        self.up1, self.up2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.d1, self.d2, self.head = norm_relu(4 * c, 2 * c), norm_relu(2 * c, c), nn.Conv2d(c, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        return self.head(self.d2(torch.cat([self.up2(self.d1(torch.cat([self.up1(c), b], 1))), a], 1)))


class Recurrent(nn.Module):
    def __init__(self, cls, **more):
        super().__init__()
        self.r = cls(12, 16, num_layers=2, batch_first=True, bidirectional=True, **more)
        self.f = nn.Linear(32, 5)

    def forward(self, x):
        return self.f(self.r(x)[0][:, -1])


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Transformer(32, 4, 2, 2, 64, batch_first=True, norm_first=True)
        self.register_buffer("mask", torch.full((5, 5), float("-inf")).triu(1))

    def forward(self, x, y):
        return self.t(x, y, tgt_mask=self.mask, tgt_is_causal=True)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(100, 32), nn.Embedding(24, 32)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True), 2, enable_nested_tensor=False)
        self.pool = nn.Linear(32, 32)

    def forward(self, ids, mask):
        x = self.word(ids) + self.place(torch.arange(ids.shape[1]))
        x = self.body(x, src_key_padding_mask=mask == 0)
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(100, 32), nn.Embedding(24, 32)
        self.ln, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 32))

    def forward(self, ids):
        b, n = ids.shape
        x = self.word(ids) + self.place(torch.arange(n))
        q, k, v = (t.view(b, n, 4, 8).transpose(1, 2) for t in self.qkv(self.ln(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, 32))
        return (x + self.mlp(x)) @ self.word.weight.T


class Rms(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(32) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Llama(nn.Module):
    """Rotary places, grouped keys, RMS norm, SwiGLU."""
    def __init__(self):
        super().__init__()
        self.word, self.w1, self.w2, self.w3 = nn.Embedding(100, 32), nn.Linear(32, 48, False), nn.Linear(48, 32, False), nn.Linear(32, 48, False)
        self.q, self.k, self.v, self.o = nn.Linear(32, 32, False), nn.Linear(32, 16, False), nn.Linear(32, 16, False), nn.Linear(32, 32, False)
        self.n1, self.n2 = Rms(), Rms()

    def turn(self, x):
        n = x.shape[2]
        a = torch.arange(n)[:, None] * 10000 ** (-torch.arange(0, 8, 2) / 8)
        cos, sin = torch.cat([a.cos(), a.cos()], -1), torch.cat([a.sin(), a.sin()], -1)
        return x * cos + torch.cat([-x[..., 4:], x[..., :4]], -1) * sin

    def forward(self, ids):
        b, n = ids.shape
        x = self.word(ids)
        h = self.n1(x)
        q, k, v = (f(h).view(b, n, -1, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = self.turn(q), self.turn(k)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        s = (q @ k.transpose(2, 3)) / 8 ** 0.5 + torch.full((n, n), float("-inf")).triu(1)
        x = x + self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, n, 32))
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Warp(nn.Module):
    """A spatial transformer."""
    def __init__(self):
        super().__init__()
        self.c, self.f = norm_relu(3, 4), nn.Linear(4 * 16 * 16, 6)

    def forward(self, x):
        theta = self.f(F.avg_pool2d(self.c(x), 2).flatten(1)).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        line = (torch.arange(32) + 0.5) / 16 - 1
        grid = torch.stack([line.expand(32, 32), line[:, None].expand(32, 32), torch.ones(32, 32)], -1)
        return F.grid_sample(x, torch.einsum("hwk,bck->bhwc", grid, theta), align_corners=False)


class Style(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.b, self.g = nn.Conv2d(3, 16, 5, 2), nn.InstanceNorm2d(16, affine=True), nn.Conv2d(16, 12, 3), nn.GroupNorm(3, 12)

    def forward(self, x):
        x = F.mish(self.g(self.b(F.pad(F.elu(self.n(self.a(F.pad(x, (2, 2, 2, 2), "reflect")))), (1, 1, 1, 1), "replicate"))))
        return torch.sigmoid(F.interpolate(F.pixel_shuffle(x, 2), scale_factor=1.5, mode="bicubic", align_corners=False))


class Index(nn.Module):
    """The nodes that exporters write for indexing, masks, sorting and reductions."""
    def forward(self, x):
        best, at = x.topk(3, -1)
        y = torch.where(x > 0, x, x.mean(-1, keepdim=True)).cumsum(1)
        z = y[:, ::2, 1:-1].clone()
        z[:, 0] = best.sum((1, 2))[:, None]
        return torch.gather(x, -1, at), z, torch.einsum("bij,bkj->bik", x, y), x.var(1), x.norm(dim=-1), x.roll(2, 1).flip(2), F.one_hot(at[..., 0], 9)


PLAIN = {
    "mlp": (lambda: nn.Sequential(nn.Linear(20, 32), nn.LeakyReLU(), nn.LayerNorm(32), nn.Linear(32, 5), nn.LogSoftmax(-1)), (2, 20)),
    "lenet": (lambda: nn.Sequential(nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10)), (1, 1, 28, 28)),
    "unet": (UNet, (1, 3, 32, 32)),
    "lstm": (lambda: Recurrent(nn.LSTM), (2, 7, 12)),
    "gru": (lambda: Recurrent(nn.GRU), (2, 7, 12)),
    "rnn": (lambda: Recurrent(nn.RNN, nonlinearity="relu"), (2, 7, 12)),
    "transformer": (Seq2Seq, (2, 6, 32), (2, 5, 32)),
    "bert": (Bert, "ids 2 9", "mask 2 9"),
    "gpt": (Gpt, "ids 2 9"),
    "llama": (Llama, "ids 2 9"),
    "wavenet": (lambda: nn.Sequential(*[p for d in (1, 2, 4, 8) for p in (nn.ConstantPad1d((d, 0), 0.0), nn.Conv1d(8 if d > 1 else 2, 8, 2, dilation=d), nn.GLU(1), nn.Conv1d(4, 8, 1))]), (1, 2, 40)),
    "conv3d": (lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.PReLU(4), nn.MaxPool3d(2), nn.ConvTranspose3d(4, 2, 3, 2, 1, 1)), (1, 2, 8, 8, 8)),
    "generator": (lambda: nn.Sequential(nn.ConvTranspose2d(16, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Hardtanh()), (2, 16, 1, 1)),
    "warp": (Warp, (2, 3, 32, 32)),
    "style": (Style, (1, 3, 32, 32)),
    "index": (Index, (2, 6, 9)),
}
# name: (width of the image, arguments). Where a network is large, fewer layers or channels of the same kind.
VISION = {
    "squeezenet1_1": (64, {}), "resnet18": (64, {}), "mobilenet_v2": (64, {}), "mobilenet_v3_small": (64, {}),
    "shufflenet_v2_x0_5": (64, {}), "efficientnet_b0": (64, {}), "mnasnet0_5": (64, {}), "googlenet": (64, {"init_weights": False, "aux_logits": False}),
    "densenet121": (64, {}), "regnet_y_400mf": (64, {}),
}
TIMM = {
    "convnext_atto": (64, {}), "vit_tiny_patch16_224": (224, {"depth": 4}), "mobilevit_xxs": (64, {}),
    "edgenext_xx_small": (64, {}), "ghostnet_050": (64, {}), "levit_128s": (224, {}), "repvgg_a0": (64, {}), "regnetx_002": (64, {}), "tinynet_e": (64, {}),
    "mobileone_s0": (64, {}), "fastvit_t8": (64, {}), "xcit_nano_12_p16_224": (224, {"depth": 4}), "pit_ti_224": (224, {}), "pvt_v2_b0": (64, {}),
    "lcnet_050": (64, {}), "rexnet_100": (64, {}), "efficientvit_b0": (64, {}), "mobilenetv4_conv_small": (64, {}), "dla46_c": (64, {}),
    "coat_lite_tiny": (224, {}), "test_nfnet": (96, {}), "test_byobnet": (96, {}), "test_mambaout": (96, {}), "test_vit3": (160, {}), "test_convnext3": (96, {}),
    "test_efficientnet_gn": (96, {}),
}


def small_vision():
    from torchvision.models.maxvit import MaxVit
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2
    return {
        "vit": (lambda: tv.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10), (1, 3, 32, 32)),
        "swin": (lambda: SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10), (1, 3, 64, 64)),
        "swin_v2": (lambda: SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10, block=SwinTransformerBlockV2, downsample_layer=PatchMergingV2), (1, 3, 64, 64)),
        "maxvit": (lambda: MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10), (1, 3, 64, 64)),
        "convnext": (lambda: tv.ConvNeXt([tv.convnext.CNBlockConfig(16, 32, 2), tv.convnext.CNBlockConfig(32, None, 2)], num_classes=10), (1, 3, 64, 64)),
        "lraspp": (lambda: Out(tv.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)), (1, 3, 64, 64)),
        "deeplabv3": (lambda: Out(tv.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)), (1, 3, 64, 64)),
        "ssdlite": (lambda: tv.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5, score_thresh=0.01, detections_per_img=20), (1, 3, 320, 320)),
    }


class Out(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m

    def forward(self, x):
        return self.m(x)["out"]


def networks():
    """name -> (module, inputs), both made when called."""
    out = {f"torch/{k}": v for k, v in PLAIN.items()}
    out.update({f"torchvision/{k}": (lambda k=k, a=a: getattr(tv, k)(weights=None, **a), (1, 3, w, w)) for k, (w, a) in VISION.items()})
    out.update({f"torchvision/{k}": v for k, v in small_vision().items()})
    out.update({f"timm/{k}": (lambda k=k, a=a: timm.create_model(k, pretrained=False, **a), (1, 3, w, w)) for k, (w, a) in TIMM.items()})
    out["timm/mixer"] = (lambda: timm.models.mlp_mixer.MlpMixer(10, 64, patch_size=16, num_blocks=2, embed_dim=32), (1, 3, 64, 64))
    return out


def example(spec, rng):
    if isinstance(spec, str):
        kind, *shape = spec.split()
        shape = [int(s) for s in shape]
        if kind == "mask":
            m = torch.ones(shape, dtype=torch.int64)
            m[-1, -3:] = 0
            return m
        return torch.from_numpy(rng.integers(0, 100, shape))
    return torch.from_numpy(rng.standard_normal(spec).astype(np.float32))


def stir(m):
    """Statistics and scales as training leaves them; nothing so small or zero that what comes before it does not count."""
    g = torch.Generator().manual_seed(1)
    for part in m.modules():
        for name, low, high in (("running_mean", -0.2, 0.2), ("running_var", 0.5, 1.5)):
            t = getattr(part, name, None)
            if isinstance(t, torch.Tensor):
                t.copy_(torch.rand(t.shape, generator=g) * (high - low) + low)
        if isinstance(part, (nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)) and getattr(part, "weight", None) is not None:
            part.weight.data.copy_(torch.rand(part.weight.shape, generator=g) * 0.5 + 0.75)
            part.bias.data.copy_(torch.rand(part.bias.shape, generator=g) * 0.4 - 0.2)
    for p in m.parameters():
        if p.abs().max() < 1e-3:
            p.data.copy_((torch.rand(p.shape, generator=g) - 0.5) / max(1, p[0].numel() if p.ndim > 1 else 2) ** 0.5)


@contextlib.contextmanager
def silence():
    """Both streams to nowhere, also for what is printed from C++."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        sys.stdout.flush()
        for fd, old in zip((1, 2), kept):
            os.dup2(old, fd)
            os.close(old)
        os.close(null)


def export(make, specs, exporter, folder):
    """Writes model.onnx and data/*.pb; raises when torch or ONNX Runtime refuse."""
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    args = tuple(example(s, rng) for s in specs)
    m = make().eval()
    stir(m)
    path = os.path.join(folder, "model.onnx")
    with torch.no_grad(), silence():
        if exporter == "dynamo":
            torch.onnx.export(m, args, path, dynamo=True, external_data=False)
        else:
            torch.onnx.export(m, args, path, dynamo=False, opset_version=17)
    session = oracle.session(path)
    feeds = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args)}
    answers = session.run(None, feeds)
    os.makedirs(os.path.join(folder, "data"))
    for what, named in (("input", list(feeds.items())), ("output", list(zip([o.name for o in session.get_outputs()], answers)))):
        for i, (name, a) in enumerate(named):
            onnx.save_tensor(numpy_helper.from_array(np.ascontiguousarray(a), name), os.path.join(folder, "data", f"{what}_{i}.pb"))


def run(cmd, limit):
    try:
        return subprocess.run(cmd, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(cmd, 124, "", f"still running after {limit} s")


def last(text):
    return (text.strip().splitlines() or ["nothing printed"])[-1][-300:]


def largest(folder):
    out = 1e-30
    for name in os.listdir(os.path.join(folder, "data")):
        if name.startswith("output"):
            a = numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, "data", name)))
            finite = np.abs(a[np.isfinite(a)]) if a.dtype.kind == "f" else np.zeros(0)
            out = max(out, float(finite.max(initial=0)))
    return out


def check(folder, ingot):
    """(result, difference, remark)"""
    scale = largest(folder)
    got = run([ingot, "verify", os.path.join(folder, "model.onnx"), "--data", os.path.join(folder, "data"), "--engine", "c", "--march", "native",
               "--quiet", "--json", "--rtol", str(NEAR), "--atol", str(NEAR * scale)], 900)
    try:
        outputs = [json.loads(x) for x in got.stdout.splitlines() if x.startswith("{")][0]["outputs"]
        worst = max([o.get("max_abs") or 0 for o in outputs], default=0) / scale
    except (IndexError, KeyError, ValueError):
        return "refused", None, last(got.stderr)
    return ("agrees" if got.returncode == 0 else "DIFFERS"), worst, "" if got.returncode == 0 else last(got.stderr)


def one(name, spec, exporter, out, ingot):
    make, *specs = spec
    folder = os.path.join(out, name.replace("/", "-") + "." + exporter)
    if not os.path.isdir(os.path.join(folder, "data")):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            export(make, specs, exporter, folder)
        except Exception as e:
            text = str(e).strip().splitlines() or [""]
            return f"not by {'ONNX Runtime' if 'ONNXRuntime' in str(e) else 'torch'}", None, f"{type(e).__name__}: {text[0][:150]}"
    return check(folder, ingot)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--only", default="*")
    ap.add_argument("--exporter", default="dynamo,script")
    ap.add_argument("--ingot", default=os.path.join(ROOT, "build", "ingot"))
    args = ap.parse_args()
    out = os.path.join(ROOT, "build", "exporters")
    os.makedirs(out, exist_ok=True)
    count = {}
    print(f"{'network':34} {'exporter':8} {'result':18} {'largest difference':>18}  seconds", flush=True)
    for name, spec in networks().items():
        if not any(fnmatch.fnmatch(name, p) for p in args.only.split(",")):
            continue
        for exporter in args.exporter.split(","):
            start = time.monotonic()
            result, worst, remark = one(name, spec, exporter, out, args.ingot)
            count[result] = count.get(result, 0) + 1
            shown = "" if worst is None else f"{worst:.1e}"
            print(f"{name:34} {exporter:8} {result:18} {shown:>18}  {time.monotonic() - start:6.1f}  {remark}".rstrip(), flush=True)
    print(", ".join(f"{n} {result}" for result, n in sorted(count.items())))
    return 1 if set(count) & {"DIFFERS", "refused"} else 0


if __name__ == "__main__":
    sys.exit(main())
