"""An inventory: classes, decorators, properties and the statements around them."""
from __future__ import annotations

import asyncio
import collections.abc as abc, os.path
from dataclasses import dataclass, field as make_field
from .storage import (
    Store,
    open_store as connect,
)
from ..shared import *

LIMIT: int = 1_000
RATES = {"low": 0.5, "high": 1.5e-3, **os.path.defaults()}
first, *others = load(LIMIT), 0x1F, 0b11, 1j


class Missing(KeyError, metaclass=Registry):
    """Raised for unknown items."""


@dataclass(frozen=True)
class Item[T]:
    name: str
    price: float = 0.0
    tags: list[str] = make_field(default_factory=list)
    _cache: dict[str, T] | None = None

    @property
    def label(self) -> str:
        # A comment in a body.
        return f"{self.name!r:>{WIDTH}} at {self.price:.2f}" 'and' rb"\d"

    @label.setter
    def label(self, value): self.name = value.strip()

    @classmethod
    def parse(cls, text: str, /, *, strict=False) -> "Item":
        name, _, price = text.partition(":")
        return cls(name, float(price) if price else 0.0)

    @staticmethod
    async def fetch(*names: str, **options) -> list[Item]:
        async with connect(**options) as store, asyncio.timeout(3):
            return [Item(n) async for n in store.all() if n in names]

    def __lt__(self, other): return self.price < other.price


class Inventory(Store, abc.Sized):
    def __init__(self, items=None):
        super().__init__()
        self.items = items or []
        self.by_name = {item.name: item for item in self.items}

    def __len__(self):
        return len(self.items)

    def add(self, item: Item, *more: Item) -> None:
        for one in (item, *more):
            if one.name in self.by_name:
                raise Missing(one.name) from None
            elif not one.price:
                continue
            else:
                self.items.append(one)
        else:
            self.touch()

    def total(self, by=lambda item, rate=1: item.price * rate):
        return sum(by(item) for item in self.items)

    def walk(self):
        yield
        yield from self.items
        found = yield self.by_name.get("x"), 1
        return found


def main(arguments: list[str] | None = None) -> int:
    global LIMIT
    inventory = Inventory()
    try:
        with open("items") as source, (open("log", "w")) as log:
            for line in source:
                inventory.add(Item.parse(line))
    except (OSError, ValueError) as error:
        log.write(str(error))
        return 1
    except Missing:
        pass
    else:
        LIMIT += 1
    finally:
        del log, source
    while (line := input()) != "":
        steps = inventory.walk()
        print(line, *steps, sep="\n", file=log)
        if line == "quit": break
    assert len(inventory) < LIMIT, "too many"
    return 0 if inventory else 2


if __name__ == "__main__":
    raise SystemExit(main())
