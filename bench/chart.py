"""Line charts as SVG, written by hand: three pictures need no plotting library."""

import math
from dataclasses import dataclass
from html import escape

from bench.load import Curve

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 50, 55
# colours that colour-blind readers tell apart, too
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
STYLE = "font:13px sans-serif;fill:#333"


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from the values `low` to `high` to the pixels `start` to `end`."""

    title: str
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def pixel(self, value: float) -> float:
        """The pixel of a value; anything below the axis is at its start."""
        low, high, at = (self._place(v) for v in (self.low, self.high, max(value, self.low)))
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round values to label."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        step = 10 ** math.floor(math.log10(self.high - self.low))
        step = step if (self.high - self.low) / step > 3 else step / 5
        count = int((self.high - self.low) / step) + 1
        return [self.low + i * step for i in range(count)]

    def _place(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a chart, and which axes are logarithmic."""

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


def line_chart(labels: Labels, curves: dict[str, Curve]) -> str:
    """An SVG document with one line per curve. On a logarithmic axis, values must be positive."""
    xs = [x for curve in curves.values() for x, _ in curve]
    ys = [y for curve in curves.values() for _, y in curve]
    x_axis = Axis(labels.x, min(xs), max(xs), LEFT, WIDTH - RIGHT, labels.log_x)
    low = 10 ** math.floor(math.log10(max(min(ys), 0.1))) if labels.log_y else 0.0
    high = 10 ** math.ceil(math.log10(max(*ys, 10 * low))) if labels.log_y else max(ys) * 1.1
    y_axis = Axis(labels.y, low, high, HEIGHT - BOTTOM, TOP, labels.log_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, labels.title, "middle", "font-weight:bold"),
        *_x_marks(x_axis),
        *_y_marks(y_axis),
    ]
    for i, (name, curve) in enumerate(curves.items()):
        parts += _line(i, name, curve, x_axis, y_axis)
    return "\n".join([*parts, "</svg>", ""])


def _x_marks(axis: Axis) -> list[str]:
    base = HEIGHT - BOTTOM
    marks = [_text(axis.pixel(v), base + 18, f"{v:,.6g}", "middle") for v in axis.ticks()]
    return [*marks, _text((LEFT + WIDTH) / 2, HEIGHT - 12, axis.title, "middle")]


def _y_marks(axis: Axis) -> list[str]:
    parts = [_text(12, TOP - 12, axis.title, "start")]
    for value in axis.ticks():
        y = axis.pixel(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:,.6g}", "end"))
    return parts


def _line(index: int, name: str, curve: Curve, x_axis: Axis, y_axis: Axis) -> list[str]:
    colour = COLOURS[index % len(COLOURS)]
    points = " ".join(f"{x_axis.pixel(x):.1f},{y_axis.pixel(y):.1f}" for x, y in curve)
    legend_y = TOP + 14 + 18 * index
    return [
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<path d="M{LEFT + 14} {legend_y - 4}h22" stroke="{colour}" stroke-width="2"/>',
        _text(LEFT + 42, legend_y, name, "start"),
    ]


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    look = f"{STYLE};{style}".rstrip(";")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{look}">{escape(text)}</text>'
    )
