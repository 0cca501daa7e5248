//! C# and Kotlin.

use super::check;

#[test]
fn csharp_classes() {
    check(
        "a.cs",
        r###"using System.Text;
using Json = Some.Lib.Json;
namespace My.App;
/// <summary>Runs <see cref="Bar"/>.</summary>
[Serializable]
public abstract class Foo<T> : Base<T>, IBar {
  private readonly IRepo _repo = new Repo();
  public string Name { get; set; }
  public int Len => Calc();
  public Foo(IRepo repo) : base(repo) { _repo = repo; }
  protected abstract void Abs();
  internal static Foo<T> Make() => new(null);
}
interface IX : IY { void M(); }
enum E { A, B }
record R(int X);
"###,
        "defs calls imports docs",
        r###"
Class Foo 5-13 abstract extends Base<T> implements IBar
Field Foo/_repo 7-7 private constant
Field Foo/Name 8-8
Method Foo/Len 9-9 getter
Method Foo/Foo 10-10 constructor
Method Foo/Abs 11-11 protected abstract
Method Foo/Make 12-12 package static
Interface IX 14-14 package extends IY
Method IX/M 14-14 abstract
Enum E 15-15 package
Field E/A 15-15 static constant
Field E/B 15-15 static constant
Class R 16-16 package
Field R/X 16-16
7 Foo: new Repo()
9 Foo/Len: Calc()
10 Foo/Foo: super(<Foo/Foo/repo>)
12 Foo/Make: new <Foo><<Foo/T>>(?)
package My.App
System.Text All
Some.Lib Json Json
public abstract class Foo<T> : Base<T>, IBar | Runs Bar.
"###,
    );
}

#[test]
fn csharp_calls() {
    check(
        "a.cs",
        r###"class C {
  async Task<Item> Run(Dictionary<string, Item> m, List<Foo> xs) {
    var x = new Foo();
    Item y = await _repo.Get(1).ConfigureAwait(false);
    x?.Do(y, name: Helper);
    base.Run(); Local(2); Gen<int>(1);
    foreach (var i in xs) i.Go();
    xs.Select(z => z.Back());
    if (y is Bar b) b.Go();
    ((Foo)y).Cast();
    int Local(int q) { return q; }
    return y;
  }
}
"###,
        "calls binds",
        r###"
3 C/Run: new Foo()
4 C/Run: _repo.Get(?)
5 C/Run: <C/Run/x>.Do(<C/Run/y>, name=Helper)
6 C/Run: super.Run()
6 C/Run: <C/Run/Local>(?)
6 C/Run: Gen(?)
7 C/Run: <C/Run/i>.Go()
8 C/Run: <C/Run/xs>.Select(?)
8 C/Run: <C/Run/z>.Back()
9 C/Run: <C/Run/b>.Go()
10 C/Run: a Foo.Cast()
x = Foo()
y = _repo.Get()
i = <C/Run/xs>[]
z = <C/Run/xs>[]
C/Run/Local gives <C/Run/Local/q>
C/Run gives <C/Run/y>
"###,
    );
}

#[test]
fn csharp_tests() {
    check(
        "tests/FooTests.cs",
        r###"public static class Ext { public static void More(this Foo f, int n) { f.Go(); } }
public class FooTests {
  [Fact] public void Works() { }
  [Theory, InlineData(1)] public void Each(int x) { }
  static void Main() { }
}
"###,
        "defs file",
        r###"
Class Ext 1-1 static
Method Ext/More 1-1 static self of Foo
Class FooTests 2-6
Method FooTests/Works 3-3 test
Method FooTests/Each 4-4 test
Method FooTests/Main 5-5 private static entry
a test file
"###,
    );
}

#[test]
fn kotlin_classes() {
    check(
        "a.kt",
        r###"package com.x
import a.b.C
import a.b.*
import a.b.D as E
/** Doc. */
abstract class Foo<T>(private val repo: Repo, x: Int) : Base(x), IFace<T> {
    val name: String = "a"
    private val svc by lazy { Service(1) }
    val size: Int
        get() = count()
    companion object {
        const val K = 1
        fun create(): Foo = Foo(1)
    }
    override suspend fun run(a: Int): Item? = null
    protected abstract fun abs()
    enum class E { A, B }
}
interface I : J {
    fun m()
}
object Single {
    fun go() {}
}
internal fun String.ext(): Int = length
typealias Al = Foo<Int>
fun main() {}
"###,
        "defs calls binds imports docs",
        r###"
Class Foo 6-18 abstract extends Base implements IFace<T>
Field Foo/repo 6-6 private
Field Foo/name 7-7
Field Foo/svc 8-8 private
Method Foo/size 9-10 getter
Field Foo/K 12-12 static constant
Method Foo/create 13-13 static
Method Foo/run 15-15 async
Method Foo/abs 16-16 protected abstract
Enum Foo/E 17-17
Field Foo/E/A 17-17 static constant
Field Foo/E/B 17-17 static constant
Interface I 19-21 extends J
Method I/m 20-20 abstract
Class Single 22-24
Method Single/go 23-23 static
Method ext 25-25 package of String
Type Al 26-26
Function main 27-27 entry
6 Foo: super(<Foo/x>)
8 Foo: Service(?)
8 Foo: lazy()
10 Foo/size: count()
13 Foo/create: <Foo>(?)
svc = Service()
A = a def Foo/E
B = a def Foo/E
Foo/size gives count()
Foo/create gives <Foo>()
ext gives length
package com.x
a.b C C
a.b All
a.b D E
abstract class Foo<T>(private val repo: Repo, x: Int) : Base(x), IFace<T> | Doc.
"###,
    );
}

#[test]
fn kotlin_calls() {
    check(
        "a.kt",
        r###"class C(val repo: Repo) : Base() {
    fun run(items: List<Item>) {
        val x = Foo(1)
        x?.go(items, name = ::helper)
        repo.find(1).save()
        helper()
        if (!ready(x) || !x.done()) return
        items.forEach { it.go() }
        items.map { i -> i.back() }
        for (j in items) j.step()
        (x as Bar).cast()
        with(x) { inside() }
        super.run()
        val o = object : Listener {
            override fun on() { helper() }
        }
        try { } catch (e: Err) { e.log() }
    }
    fun helper() {}
}
"###,
        "calls binds",
        r###"
1 C: super()
3 C/run: Foo(?)
4 C/run: <C/run/x>.go(<C/run/items>, name=<C/helper>)
5 C/run: <C/repo>.find(?)
5 C/run: <C/repo>.find().save()
6 C/run: helper()
7 C/run: ready(<C/run/x>)
7 C/run: <C/run/x>.done()
8 C/run: <C/run/items>.forEach()
8 C/run: <C/run/it>.go()
9 C/run: <C/run/items>.map()
9 C/run: <C/run/i>.back()
10 C/run: <C/run/j>.step()
11 C/run: a Bar.cast()
12 C/run: with(<C/run/x>)
12 C/run: inside()
13 C/run: super.run()
15 C/run/<anonymous>/on: helper()
17 C/run: <C/run/e>.log()
x = Foo()
it = <C/run/items>[]
i = <C/run/items>[]
j = <C/run/items>[]
o = a def C/run/<anonymous>
"###,
    );
}

#[test]
fn kotlin_tests() {
    check(
        "src/test/kotlin/FooTest.kt",
        r###"class FooTest {
    @Test
    fun works() {
        check()
    }
    @org.junit.jupiter.api.Test fun too() {}
}
"###,
        "defs calls file",
        r###"
Class FooTest 1-7
Method FooTest/works 2-5 test
Method FooTest/too 6-6 test
4 FooTest/works: check()
a test file
"###,
    );
}
