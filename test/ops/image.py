"""ImageDecoder: what ingot reads without libraries: PNG of every kind and filter, BMP, PNM, TIFF."""
import struct
import zlib

import numpy as np

W, H = 13, 9


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def filtered(rows, step):
    """Each row by another of the five filters."""
    out, above = b"", bytes(len(rows[0]))
    for y, row in enumerate(rows):
        kind = y % 5
        out += bytes([kind])
        for i, x in enumerate(row):
            left, up, corner = row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
            out += bytes([(x - (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]) % 256])
        above = row
    return out


def png(kind, bits, samples, palette=None):
    """samples: [H, W, planes] of that many bits."""
    rows = []
    for line in samples.reshape(H, -1):
        if bits == 16:
            rows.append(line.astype(">u2").tobytes())
        else:
            flat = np.unpackbits(line.astype(np.uint8)[:, None], axis=1)[:, 8 - bits:].reshape(-1)
            rows.append(np.packbits(flat).tobytes())
    planes = samples.shape[2]
    body = zlib.compress(filtered(rows, max(1, planes * bits // 8)))
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, bits, kind, 0, 0, 0))]
    if palette is not None:
        parts.append(chunk(b"PLTE", palette.tobytes()))
    parts += [chunk(b"IDAT", body[:20]), chunk(b"IDAT", body[20:]), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def bmp(rgb, up):
    rows = [line[:, ::-1].tobytes() + bytes(-3 * W % 4) for line in rgb]
    body = b"".join(rows[::-1] if up else rows)
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(body), 0, 54, 40, W, H if up else -H, 1, 24, 0, len(body), 0, 0, 0, 0) + body


def tiff(rgb, order):
    end = {"<": b"II*\0", ">": b"MM\0*"}[order]
    tags = [(256, 4, W), (257, 4, H), (258, 3, 8), (259, 3, 1), (262, 3, 2), (273, 4, 0), (277, 3, 3), (278, 4, H)]
    start = 8 + 2 + 12 * len(tags) + 4
    out = end + struct.pack(order + "IH", 8, len(tags))
    for tag, kind, value in tags:
        value = start if tag == 273 else value
        out += struct.pack(order + "HHI", tag, kind, 1) + (struct.pack(order + "HH", value, 0) if kind == 3 else struct.pack(order + "I", value))
    return out + bytes(4) + rgb.tobytes()


def cases(Case, rng):
    def case(name, data, want, **attrs):
        return Case(name, "ImageDecoder", ["x"], ["y"], {"x": np.frombuffer(data, np.uint8)}, attrs=attrs, expect=[want])
    for kind, planes, name in ((0, 1, "grey"), (2, 3, "rgb"), (3, 1, "palette"), (4, 2, "grey_alpha"), (6, 4, "rgba")):
        for bits in (1, 2, 4, 8, 16):
            if bits == 16 and kind == 3 or bits < 8 and kind not in (0, 3):
                continue
            samples = rng.integers(0, 2 ** bits, (H, W, planes))
            table = rng.integers(0, 256, (2 ** min(bits, 8), 3)).astype(np.uint8)
            if kind == 3:
                want = table[samples[:, :, 0]]
            else:
                level = (samples >> 8 if bits == 16 else samples * 255 // (2 ** bits - 1)).astype(np.uint8)
                want = level[:, :, :3] if planes >= 3 else np.repeat(level[:, :, :1], 3, 2)
            yield case(f"png_{name}_{bits}", png(kind, bits, samples, table if kind == 3 else None), want)
    rgb = rng.integers(0, 256, (H, W, 3)).astype(np.uint8)
    grey = ((rgb.astype(int) @ [19595, 38470, 7471] + 0x8000) >> 16).astype(np.uint8)[:, :, None]
    for how, want in (("RGB", rgb), ("BGR", rgb[:, :, ::-1]), ("Grayscale", grey)):
        yield case(f"bmp_{how}", bmp(rgb, how != "BGR"), want, pixel_format=how)
    yield case("pnm_rgb", b"P6\n# made up\n%d %d\n255\n" % (W, H) + rgb.tobytes(), rgb)
    yield case("pnm_grey", b"P5 %d %d 255 " % (W, H) + rgb[:, :, 0].tobytes(), np.repeat(rgb[:, :, :1], 3, 2))
    for order, name in (("<", "little"), (">", "big")):
        yield case(f"tiff_{name}", tiff(rgb, order), rgb)
