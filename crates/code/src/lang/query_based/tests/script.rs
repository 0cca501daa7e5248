//! Ruby and PHP.

use super::check;

#[test]
fn ruby_classes() {
    check(
        "a.rb",
        r###"require "json"
require_relative "x/y"
# Doc of A.
module A
  class B < C::D
    include Comparable
    attr_reader :name
    LIMIT = 3
    def initialize(repo) = @repo = repo
    def self.create(x) = new(x)
    class << self
      def build; end
    end
    private
    def secret; super; end
    public def open; end
    alias other open
  end
end
"###,
        "defs calls binds imports docs",
        r###"
Module A 4-19
Class A/B 5-18 extends C.D extends Comparable
Method A/B/name 7-7
Field A/B/LIMIT 8-8 constant
Method A/B/initialize 9-9 constructor
Method A/B/create 10-10 static
Method A/B/build 12-12 static
Method A/B/secret 15-15 private
Method A/B/open 16-16
Method A/B/other 17-17
10 A/B/create: new This(<A/B/create/x>)
15 A/B/secret: super.secret()
this.@repo = <A/B/initialize/repo>
other = <A/B/open>
A/B/name gives this.@name
A/B/initialize gives <A/B/initialize/repo>
A/B/create gives This()
A/B/secret gives super.secret()
package
json All
./x/y All
module A | Doc of A.
"###,
    );
}

#[test]
fn ruby_calls() {
    check(
        "a.rb",
        r###"class B
  before_action :check
  def run(list)
    y = Foo.new(1)
    y.go
    @repo.find(key: y).save!
    helper
    list.each { |item| item.run }
    self.bar
    A::B.create(*list)
    puts "#{calc}"
    x = y || other
    x
  end
end
"###,
        "calls binds uses",
        r###"
2 B: before_action(?)
4 B/run: new Foo(?)
5 B/run: <B/run/y>.go()
6 B/run: this.@repo.find(key=<B/run/y>)
6 B/run: this.@repo.find().save!()
7 B/run: helper()
8 B/run: <B/run/list>.each()
8 B/run: <B/run/item>.run()
9 B/run: this.bar()
10 B/run: A.B.create(*<B/run/list>)
11 B/run: puts(?)
11 B/run: calc()
12 B/run: other()
y = Foo()
item = <B/run/list>[]
x = <B/run/y> | other()
B/run gives <B/run/x>
uses check, <B/run/y>, <B/run/list>, <B/run/y>, <B/run/x>
"###,
    );
}

#[test]
fn ruby_tests() {
    check(
        "test/x_test.rb",
        r###"class XTest < Minitest::Test
  def test_it; assert check; end
  def helper; end
end
"###,
        "defs calls file",
        r###"
Class XTest 1-4 extends Minitest.Test
Method XTest/test_it 2-2 test
Method XTest/helper 3-3
2 XTest/test_it: check()
2 XTest/test_it: assert(check())
a test file
"###,
    );
}

#[test]
fn php_classes() {
    check(
        "a.php",
        r###"<?php
namespace App\Models;
use A\B\C;
use A\B\D as E;
use G\{H, I as J};
require_once __DIR__ . '/x.php';
/** Doc. */
abstract class Foo extends Base implements I1, \X\I2 {
  use T1;
  const K = 1;
  private ?Repo $repo;
  public function __construct(private Dep $dep) { parent::__construct($dep); }
  abstract protected function abs();
  public static function make(): static { return new static(); }
}
interface I extends J1 { function m(); }
trait T { }
enum Suit { case Hearts; }
function top() { }
"###,
        "defs calls binds imports docs",
        r###"
Class Foo 8-15 abstract extends Base implements I1 implements X.I2 extends T1
Field Foo/K 10-10 static constant
Field Foo/repo 11-11 private
Method Foo/__construct 12-12 constructor
Field Foo/dep 12-12 private
Method Foo/abs 13-13 protected abstract
Method Foo/make 14-14 static
Interface I 16-16 extends J1
Method I/m 16-16 abstract
Class T 17-17
Enum Suit 18-18
Field Suit/Hearts 18-18 static constant
Function top 19-19
12 Foo/__construct: super.__construct(<Foo/__construct/$dep>)
14 Foo/make: new This()
this.dep = <Foo/__construct/$dep>
Hearts = a def Suit
Foo/make gives This()
package App\Models
A\B C C
A\B D E
G H H
G I J
./x.php All
abstract class Foo extends Base implements I1, \X\I2 | Doc.
"###,
    );
}

#[test]
fn php_calls() {
    check(
        "a.php",
        r###"<?php
class C {
  function run(Foo $p, array $xs) {
    $x = new Bar(1);
    $x->go();
    $this->repo->find($p)->save();
    bar($x); \strlen("a"); A\f(1); $p(1);
    self::f(); Foo::make(name: $x);
    foreach ($xs as $k => $i) { $i->go(); }
    array_map([$this, 'm'], $xs);
    $f = $this->m(...);
    $g = fn($z) => $z->m();
    return $x;
  }
}
"###,
        "calls binds uses",
        r###"
4 C/run: new Bar(?)
5 C/run: <C/run/$x>.go()
6 C/run: this.repo.find(<C/run/$p>)
6 C/run: this.repo.find().save()
7 C/run: bar(<C/run/$x>)
7 C/run: strlen(?)
7 C/run: A.f(?)
7 C/run: <C/run/$p>(?)
8 C/run: This.f()
8 C/run: Foo.make($name=<C/run/$x>)
9 C/run: <C/run/$i>.go()
10 C/run: array_map(this.m, <C/run/$xs>)
12 C/run: <C/run/$z>.m()
$x = Bar()
$i = <C/run/$xs>[]
$f = this.m
C/run gives <C/run/$x>
uses Foo, Bar, <C/run/$p>, <C/run/$x>, <C/run/$x>, <C/run/$xs>, this.m, <C/run/$xs>, this.m, this.m, <C/run/$x>
"###,
    );
}

#[test]
fn php_tests() {
    check(
        "tests/FooTest.php",
        r###"<?php
class FooTest extends TestCase {
  public function testIt() { $this->assertTrue(run()); }
  #[Test] public function works() { }
  private function help() { }
}
"###,
        "defs calls file",
        r###"
Class FooTest 2-6 extends TestCase
Method FooTest/testIt 3-3 test
Method FooTest/works 4-4 test
Method FooTest/help 5-5 private
3 FooTest/testIt: run()
3 FooTest/testIt: this.assertTrue(run())
a test file
"###,
    );
}
