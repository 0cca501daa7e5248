//! Parameters without a declared type: the context of their function determines the type.

use super::calls;

const CONTEXT: &str = "export class Req { header(name: string): string { return name } }\n\
     export class Context { req = new Req() }\n\
     export type Next = () => Promise<void>\n\
     export type Handler<E = any> = (c: Context, next: Next) => Promise<void>\n\
     export interface Options { onError: (e: Error, c: Context) => void; log?(c: Context): void }\n\
     export class App {\n\
     \x20 use(...handlers: Handler[]): void {}\n\
     \x20 mount(options: Options): void {}\n\
     }\n";

/// The lines of the calls of `header` in a file that imports the code above in its first line.
fn headers(body: &str) -> Vec<u32> {
    let text = format!("import {{ App, Handler, Options }} from './context'\n{body}");
    let found = calls(&[("src/context.ts", CONTEXT), ("src/use.ts", &text)]);
    let line = |call: &String| {
        let (place, to) = call.split_once(" -> ")?;
        // Links with less confidence are guesses by name.
        (to == "src/context.ts Req.header:1 0.9").then(|| place.rsplit(':').next()?.parse().ok())?
    };
    found.iter().filter_map(line).collect()
}

#[test]
fn a_returned_function_takes_what_the_declared_result_takes() {
    let body = "export const a = (): Handler => async (c, next) => {\n  c.req.header('x')\n}\n\
                export function b(): Handler {\n  return async function b(c) { c.req.header('x') }\n}\n\
                export const d = (flag: boolean): Handler<string> => {\n\
                \x20 return flag ? async (c) => { c.req.header('x') } : async (c) => {\n    c.req.header('x')\n  }\n}\n";
    assert_eq!(headers(body), [3, 6, 9, 10]);
    // Without a declared result, the type of `c` is unknown.
    assert_eq!(headers("export const a = () => async (c, next) => { c.req.header('x') }\n"), [0u32; 0]);
}

#[test]
fn a_declared_variable_and_a_rest_parameter_say_what_a_function_takes() {
    let body = "const a: Handler = async (c) => { c.req.header('x') }\n\
                class K { h: Handler = async (c) => { c.req.header('x') } }\n\
                new App().use(a, async (c) => {\n  c.req.header('x')\n})\n";
    assert_eq!(headers(body), [2, 3, 5]);
}

#[test]
fn a_function_in_an_object_takes_what_the_declared_member_takes() {
    let body = "const o: Options = { onError: (e, c) => { c.req.header('x') } }\n\
                new App().mount({ onError: (e, c) => { c.req.header('x') }, log: (c) => { c.req.header('x') } })\n";
    assert_eq!(headers(body), [2, 3, 3]);
}

#[test]
fn a_function_that_returns_a_function_is_typed_by_the_variable_it_is_put_into() {
    let body = "const make: () => Handler = () => (c) => { return c.req.header('x') as any }\n";
    assert_eq!(headers(body), [2]);
}
