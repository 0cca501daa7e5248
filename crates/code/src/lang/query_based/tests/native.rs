//! C and C++.

use super::check;

#[test]
fn c_functions() {
    check(
        "a.c",
        r###"/* Adds. */
static int add(int a, struct pair *p) { return a + p->sum(a); }
int twice(int a); // later
int main(int argc, char **argv) {
    return add(twice(1), 0);
}
"###,
        "defs calls docs",
        r###"
Function add 2-2 private
Function twice 3-3 declared
Function main 4-6 entry
2 add: <add/p>.sum(<add/a>)
5 main: <twice>(?)
5 main: <add>(<twice>(), ?)
static int add(int a, struct pair *p) | Adds.
"###,
    );
}

#[test]
fn c_types() {
    check(
        "a.c",
        r###"typedef struct { int x; } point;
struct node { struct node *next; int (*go)(int); };
typedef struct node Node;
enum color { RED, GREEN };
union u { int a; };
extern int outside;
#define MAX 10
#define SQ(x) ((x) * (x))
"###,
        "defs",
        r###"
Struct point 1-1
Field point/x 1-1
Struct node 2-2
Field node/next 2-2
Field node/go 2-2
Type Node 3-3
Enum color 4-4
Field color/RED 4-4 constant
Field color/GREEN 4-4 constant
Struct u 5-5
Field u/a 5-5
Variable outside 6-6 declared
Variable MAX 7-7 constant
Function SQ 8-8
"###,
    );
}

#[test]
fn c_tables() {
    check(
        "a.c",
        r###"static struct ops table = { .open = my_open, .close = my_close };
static void (*handlers[])(int) = { on_a, &on_b };
void run(struct ops *o) { o->open(1); struct ops *p = o; p->cb = on_c; handlers[0](2); }
"###,
        "calls binds uses",
        r###"
3 run: <run/o>.open(?)
3 run: <handlers>[](?)
table = ops<my_open, my_close>
p = <run/o>
<run/p>.cb = on_c
uses ops, my_open, my_close, on_a, on_b, ops, ops, <run/o>, on_c
"###,
    );
}

#[test]
fn c_includes() {
    check(
        "test_x.c",
        r###"#include "dir/x.h"
#include <stdio.h>
"###,
        "imports file",
        r###"
package
dir/x.h All
<stdio.h> Nothing
a test file
"###,
    );
}

#[test]
fn cpp_classes() {
    check(
        "a.cpp",
        r###"namespace a::b {
template <class T>
class Foo : public Base, private ns::Other<T> {
  int hidden;
public:
  Foo(int x) : Base(x), y_(x) {}
  virtual void bar() = 0;
  static int baz(const std::string& s);
protected:
  std::vector<Item> items;
};
}
"###,
        "defs calls binds",
        r###"
Module a 1-12
Module a/b 1-12
Class a/b/Foo 2-11 extends Base extends ns.Other
Field a/b/Foo/hidden 4-4 private
Method a/b/Foo/Foo 6-6 constructor
Method a/b/Foo/bar 7-7 abstract
Method a/b/Foo/baz 8-8 static declared
Field a/b/Foo/items 10-10 protected
6 a/b/Foo/Foo: implicit Base(<a/b/Foo/Foo/x>)
this.y_ = <a/b/Foo/Foo/x>
"###,
    );
}

#[test]
fn cpp_outside() {
    check(
        "a.cpp",
        r###"class Q { void f(); Q(); int n; };
Q::Q() {}
void Q::f() { g(); this->h(); A::f(); }
namespace x { void ns::Z::m() {} }
namespace { void hidden() {} }
static void kept() {}
"###,
        "defs calls",
        r###"
Class Q 1-1
Method Q/f 1-1 private declared
Method Q/Q 1-1 private constructor declared
Field Q/n 1-1 private
Method Q 2-2 constructor of <Q>
Method f 3-3 of <Q>
Module x 4-4
Method x/m 4-4 of ns.Z
Function hidden 5-5 private
Function kept 6-6 private
3 f: g()
3 f: this.h()
3 f: A.f()
"###,
    );
}

#[test]
fn cpp_values() {
    check(
        "a.cpp",
        r###"void f(Bar* b, std::shared_ptr<Dep> d) {
  auto p = std::make_unique<Foo>(1);
  p->run();
  Foo q(b);
  Foo* n = new Foo(std::move(b));
  for (auto& i : q.items) i.go();
  static_cast<X*>(n)->go();
  d->use(&f);
  [&](int k) { g(k); return 1; };
}
"###,
        "calls binds types",
        r###"
2 f: new Foo(?)
3 f: <f/p>.run()
4 f: new Foo(<f/b>)
5 f: new Foo(<f/b>)
6 f: <f/i>.go()
7 f: a X.go()
8 f: <f/d>.use(<f>)
9 f: g(<f/k>)
p = Foo()
q = Foo()
n = Foo()
i = <f/q>.items[]
b: Bar
d: Dep
q: Foo
n: Foo
"###,
    );
}

#[test]
fn cpp_tests_and_macros() {
    check(
        "a_test.cpp",
        r###"TEST(Suite, Works) { run(); }
TEST_F(Fixture, Uses) { help(); }
class API Named {
 public:
  virtual void go() = 0;
  void stop();
};
"###,
        "defs calls file",
        r###"
Function Suite.Works 1-1 test
Method Fixture.Uses 2-2 test of Fixture
Class Named 3-7
Method Named/go 5-5 abstract
Method Named/stop 6-6 declared
1 Suite.Works: run()
2 Fixture.Uses: help()
a test file
"###,
    );
}
