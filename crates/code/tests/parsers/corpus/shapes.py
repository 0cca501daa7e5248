# Expressions, patterns and comprehensions.
import math

type Point = tuple[float, float]
type Nested[T] = dict[str, list[T]]

unit = (0.0, 1.0)
squares = [x ** 2 for x in range(10) if x % 2 if x > 2]
table = {(i, j): i * j for i in range(3) for j in range(i, 3)}
letters = {c.lower() for c in "Text" if c not in "xyz" and c is not None}
lazy = (area(s) for s in shapes())
part = squares[1:-1:2], squares[:], squares[::2], table[0, 1], unit[-1]
flags = ~1 | 2 & 3 ^ 4 << 1 >> 2
ratio = (a + b) * c // d @ e - -f
is_ok = not (a < b <= c != d) or e is f and g not in h
chosen = first if is_ok else (lambda: second)()
text = f"{a + 1} of {len(b)} {{literal}} {c['key']} {d=}"
document = """Several
lines with 'quotes' and \
a continuation."""
x = y = z = None
x, (y, [z]) = 1, (2, [3])
x += 1; y -= 2; z **= 3
call(a)(b)[c].d(*e, f=g, **h).i


def area(shape):
    match shape:
        case Circle(radius=r) if r > 0:
            return math.pi * r ** 2
        case Square(side) | Tile(side, _):
            return side * side
        case {"kind": "line", "from": start, **rest}:
            return length(start, rest)
        case [first, *_, last] as path:
            return area(first) + area(last) + len(path)
        case (0 | 1) | -1 | 2.5 | "none" | None | True:
            return 0
        case Shape.EMPTY:
            return empty()
        case _:
            raise TypeError(shape)


async def gather(urls):
    async for page in fetch_all(urls):
        await page.render()
    results = await first(urls), [await r for r in urls]
    return results


def outer():
    count = 0

    def inner(step=1, *, key: str = "k", **named):
        nonlocal count
        count += step
        return key, named

    return inner


def continued(a,
              b=some.default(),
              *args):
    value = a + \
        b
    return (
        value
        .first()  # a comment between
        .second(args)
    )


try: go()
except* Failure as group: report(group)

for i, in pairs(): pass
for key, value in table.items():
    print(key, value)
with manager: pass
class Empty: ...
