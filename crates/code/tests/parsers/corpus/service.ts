// Types and classes.
import type { A, B as C } from './types';
import D, { type E, F } from './values';
import legacy = require('legacy');
export type { Options } from './options';

export type Id = string | number;
type Handler<T = unknown> = (this: Service, event: T, ...rest: any[]) => Promise<void> | void;
type Partialled<T> = { readonly [K in keyof T]?: T[K] } & { -readonly [K in 'a' | 'b']-?: () => K };
type Element<T> = T extends (infer U)[] ? U : T extends Map<string, infer V> ? Element<V> : never;
type Tuple = [first: string, second?: number, ...rest: boolean[]];
type Path = `/${string}/${Id}`;
type Maker = new (...args: any[]) => object;
type Shape = typeof import('./shape').default;
let unique: unique symbol, indexed: Options['name'][], guard: (x: unknown) => x is string;

/** A thing with a name. */
export interface Named<T extends object = {}> extends Base<T>, Other {
  readonly name: string;
  age?: number;
  greet(other: Named, ...more: string[]): void;
  (call: string): T;
  new (make: number): Named<T>;
  [key: string]: any;
  get value(): T;
  set value(v: T);
}

export enum Color { Red, Green = 'green', Blue = compute(1) | 2 }
declare const enum Flags { None = 0 }
declare module 'untyped' { export function run(x: number): string; }
declare global { interface Window { service: Service } }
namespace Tools.Inner { export const x = 1; export function help(): void { x } }
declare function external(a: string): asserts a is 'b';
declare let injected: { a: string, b(): void };

@Injectable({ scope: 'root' })
export abstract class Service<T extends Named> extends Parent<T, Id> implements Runs, Stops<T> {
  private readonly cache = new Map<string, T[]>();
  static instance?: Service<any>;
  protected declare state: State;
  public name!: string;
  [key: string]: unknown;

  constructor(@Inject(TOKEN) private readonly http: Http, public options?: Options, ...rest: any[]) {
    super(http as any, <any>options);
  }

  abstract stop(reason: string): Promise<void>;
  protected abstract get ready(): boolean;
  find(id: Id): T | undefined;
  find(id: any): any { return this.cache.get(id!)?.[0]!.value }
  @Logged() async load<K extends keyof T>(this: this, key: K, fallback = this.make<T>(key)): Promise<T[K]> {
    const value = (await this.http.get(`/${String(key)}`)) as T;
    return (value satisfies Named)[key] ?? fallback;
  }
  static create<T>(make: () => T): T { return make() }
  override toString(): string { return super.toString() }
}

export function isNamed(x: unknown): x is Named { return typeof x === 'object' && x !== null && 'name' in x }
export const pick = <T, K extends keyof T>(value: T, ...keys: K[]): Pick<T, K> => keys.reduce((o, k) => ({ ...o, [k]: value[k] }), {} as Pick<T, K>);
const sizes = { small: 1, large: 2 } as const, nested = new Map<string, Array<Set<Id>>>();
let handler: Handler<Event> = async function (event) { await this.load(event.key) }, call = generic<string>('x');
for (const entry of nested.entries() as Iterable<[string, unknown]>) use(entry);
try { run() } catch (error: unknown) { if (error instanceof Error) report(error.message) }
function overloaded(a: string): void;
function overloaded(a: number, b?: string): void;
function overloaded(...args: any[]) { args.forEach((arg: any, i: number): void => use(arg, i)) }
export default class extends Service<Named> { async stop() {} get ready() { return true } }
