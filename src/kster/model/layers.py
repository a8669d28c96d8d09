"""Matrix products and norms of a network, each in the precision that was asked for.

On a CPU a product mostly waits for its weights to be read: shorter numbers are less to read, and there are
instructions that multiply more of them at once.

bfloat16: products in bfloat16, all else float32; a key moves by less than a hundredth of its length, so keys
of any precision serve queries of any other. The output projection and the last feed-forward network, from
which no key comes, are in 8 bits. int8: all products in 8 bits, weights rounded by row, inputs by product.
Translations are as good, but a key moves by a twentieth of its length, and differently in every batch: what a
memory holds exactly is not recognised.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from kster.errors import SettingsError

log = logging.getLogger("kster.model")

Precision = Literal["auto", "int8", "bfloat16", "float16", "float32"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

Layer = Callable[[Tensor], Tensor]  # (…, in) → (…, out)

ACTIVATIONS: dict[str, Layer] = {"relu": F.relu, "swish": F.silu, "silu": F.silu, "gelu": F.gelu}

SMALLEST = 256  # dimension that "auto" computes in less than float32: smaller networks are mostly overhead


@dataclass(frozen=True, slots=True)
class Dense:
    """In the type of its weights."""

    weight: Tensor  # (out, in)
    bias: Tensor | None  # (out,)
    activation: Layer | None = None

    def __call__(self, x: Tensor) -> Tensor:
        product = F.linear(x, self.weight, self.bias)
        return product if self.activation is None else self.activation(product)


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Tensor  # (d,)
    bias: Tensor  # (d,)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)


class Int8:
    """In 8 bits, from float32 to float32; weights are scaled row by row, so that an outlier costs its own
    only."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Layer | None = None) -> None:
        """weight: (out, in) and bias: (out,), float32."""
        scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.float32).tiny)  # (out,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that these types are to be replaced one day
            rounded = torch.quantize_per_channel(
                weight, scales.double(), torch.zeros(len(weight), dtype=torch.int64), 0, torch.qint8
            )
        self.packed = torch.ops.quantized.linear_prepack(rounded, bias)
        ready = torch.ops.quantized
        product = ready.linear_relu_dynamic if activation is F.relu else ready.linear_dynamic
        self.product = product.default  # an overload by its name is found in half the time
        self.activation = None if activation is F.relu else activation

    def __call__(self, x: Tensor) -> Tensor:
        product = self.product(x, self.packed)
        return product if self.activation is None else self.activation(product)


class Bfloat16:
    """In bfloat16, sums in float32; from any type to bfloat16."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Layer | None = None) -> None:
        """weight: (out, in) and bias: (out,), any floating type."""
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.bfloat16())
        self.bias = None if bias is None else bias.bfloat16()
        self.activation = None if activation is F.relu else activation
        self.fused = "relu" if activation is F.relu else "none"  # with the product: a pass less

    def __call__(self, x: Tensor) -> Tensor:
        product = torch.ops.mkldnn._linear_pointwise.default(
            x.bfloat16(), self.weight, self.bias, self.fused, [], ""
        )
        return product if self.activation is None else self.activation(product)


def choose_precision(wanted: str, device: torch.device, dimension: int) -> Precision:
    """The precision to compute in; "auto" is the fastest that translates as well as float32.

    dimension: of the network.
    """
    if wanted not in PRECISIONS:
        raise SettingsError(f"precision {wanted!r} is unknown; accepted: {', '.join(PRECISIONS)}")
    on_gpu = device.type == "cuda"
    if wanted == "auto" and on_gpu:
        return "float16"
    if wanted == "auto":
        return "bfloat16" if dimension >= SMALLEST and has_instructions_for("bfloat16") else "float32"
    accepted = ("bfloat16", "float16", "float32") if on_gpu else ("int8", "bfloat16", "float32")
    if wanted not in accepted:
        raise SettingsError(
            f"precision {wanted!r} is not for device {device}; accepted: auto, {', '.join(accepted)}"
        )
    if not on_gpu and wanted != "float32" and not has_instructions_for(wanted):
        log.warning("this processor has no instructions for %s; float32 is used", wanted)
        return "float32"
    return wanted


@cache
def has_instructions_for(precision: str) -> bool:
    """Whether this processor is made for it; without its instructions float32 is as fast and more exact."""
    if precision == "bfloat16":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.cpu._is_vnni_supported()) and "x86" in torch.backends.quantized.supported_engines


def linear(
    precision: Precision,
    weights: list[Tensor],
    biases: list[Tensor],
    device: torch.device,
    activation: Layer | None = None,
) -> Layer:
    """One product for several matrices that read the same input; biases: as many as weights, or none."""
    dtype = dtype_of(precision, device)
    weight = _joined(weights).to(device, dtype).contiguous()
    bias = _joined(biases).to(device, dtype).contiguous() if biases else None
    if device.type == "cpu" and precision in ("int8", "bfloat16"):
        return (Int8 if precision == "int8" else Bfloat16)(weight, bias, activation)
    return Dense(weight, bias, activation)


def output_precision(precision: Precision, device: torch.device) -> Precision:
    """Of the output projection and all that no key comes from, where layers have this one."""
    return (
        "int8"
        if device.type == "cpu" and precision == "bfloat16" and has_instructions_for("int8")
        else precision
    )


def dtype_of(precision: Precision, device: torch.device) -> torch.dtype:
    """The type of what goes from layer to layer: on a CPU float32, whatever the products are in."""
    return torch.float32 if device.type == "cpu" else getattr(torch, precision)


def _joined(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
