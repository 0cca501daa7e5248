#!/usr/bin/env node
/** A store of records. */
'use strict';

import fs, { readFile, writeFile as write, default as files } from 'node:fs';
import * as path from 'path';
import data from './data.json' with { type: 'json' };

const { join, sep: separator = '/', ...rest } = path, [first, , third = 3, ...others] = load();
let counter = 0, big = 10n, ratio = .5e-3 + 0xFF + 0b1 + 1_000;
var pattern = /[/\]]x\//gi.test(join(a, b)) / 2;

export const limits = { small: 1, 'very large': 2, [key()]: 3, 4: four, counter, ...rest };
export * from './more.js';
export * as tools from './tools.js';
export { counter as count, big };

/** Says hello. */
export default async function main(argv = process.argv, { verbose, out: { stream } = {} }, ...more) {
  for await (const chunk of read(argv[2])) counter += chunk.length;
  for (const [key, value] of Object.entries(limits)) console.log(key, value);
  for (let i = 0, n = more.length; i < n; i++) { if (!more[i]) continue; else break }
  for (var name in limits) delete limits[name];
  label: while (true) { do { counter-- } while (counter > 0); break label; }
  switch (typeof verbose) {
    case 'string': case 'number': await log(verbose); break;
    default: throw new TypeError(`bad ${verbose ?? 'value'} in ${stream.name(`nested ${counter}`)}`);
  }
  try { return await run() } catch ({ message }) { console.error(message) } finally { close?.() }
  if (counter) return void 0; else if (big >= 2n && !(ratio in limits) || first instanceof Store) return;
}

export class Store extends mixin(Base, Events) {
  static #count = 0;
  static { Store.#count = 1 }
  name = 'store'; #secret;
  'quoted' = () => this.#secret;
  constructor(options = {}) {
    super(options);
    this.items = new Map([[1, () => options]]);
    this.get = this.get.bind(this);
  }
  get size() { return this.items.size }
  set size(value) { this.resize(value) }
  static async *from(source) { for (const one of source) yield* one; yield; const last = yield third }
  async get(id) { return this.items.get(id)?.value?.[0]?.(id) }
  [Symbol.iterator]() { return this.items[Symbol.iterator]() }
}

const add = (a, b) => a + b, twice = x => add(x, x), object = () => ({ twice }), later = async x => { await x };
const chosen = first ? (a) => b : counter > 1 ? add(1, 2) : null;
counter ||= 1; counter **= 2; big <<= 1n; ratio ??= chosen; [first, counter] = [counter, first];
const old = function legacy() { return arguments.length + this.x };
legacy.prototype.save = function () { return this.store(new.target, import.meta.url) };
module.exports = { old, save() {}, get lazy() { return old }, async *walk() {} };
exports.helper = require('./helper').helper;
(function () { helper() })(), (() => setup())();
new Store().add(new (pick())(1)).then(x => x, function fail() { retry() });
tag`a ${b()} c`; import('./lazy.js').then(m => m.default());
const view = props => <List items={props.items} key="k" {...rest}>{props.items.map(i => <Item {...i} onClick={() => open(i)} />)} text <></></List>;
x = a
  .b()
  .c(d);
