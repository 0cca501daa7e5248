//! Small Scala texts: their facts, and the calls between them.

use crate::facts::{DefId, FileFacts, ImportKind, ROOT, Visibility, flag};
use crate::languages::language;
use crate::languages::printed::printed;
use crate::resolve::call::tests::check;

const SHOP: &str = "package com.shop
package core

import scala.collection.mutable.{Map => MMap, Set}
import com.kit._
import com.kit.Point

/** A shop. */
abstract class Shop[T <: Item](val name: String, private val items: List[Item] = Nil) extends Base(name) with Sellable[T] {
  private val total: Int = items.size
  def sell(item: Item, to: Buyer): Receipt = { val r = Receipt(item); r }
  def size = total
  protected def close(): Unit
  type Alias = Map[String, Int]
}
object Shop { def apply(name: String): Shop = new Shop(name); val X = 1 }
trait Sellable[T] { def sell(item: T): Unit }
case class Item(name: String)
case object Nothing extends Kind
enum Color { case Red, Green }
";

fn facts(path: &str, text: &str) -> FileFacts {
    crate::parse(path, text, language("scala"))
}

fn defs(facts: &FileFacts) -> Vec<String> {
    printed(facts, Visibility::Public)
}

#[test]
fn definitions() {
    let facts = facts("a.scala", SHOP);
    assert_eq!(
        defs(&facts),
        [
            "Class Shop 9 abstract",
            "Field Shop.name 9",
            "Field Shop.items 9 private",
            "Field Shop.total 10 private constant",
            "Method Shop.sell 11",
            "Method Shop.size 12 getter",
            "Method Shop.close 13 protected abstract",
            "Type Shop.Alias 14",
            "Method Shop.apply 16 static",
            "Field Shop.X 16 static constant",
            "Interface Sellable 17",
            "Method Sellable.sell 17 abstract",
            "Class Item 18",
            "Field Item.name 18",
            "Class Nothing 19",
            "Enum Color 20",
            "Field Color.Red 20 static constant",
            "Field Color.Green 20 static constant",
        ]
    );
    assert_eq!(&*facts.package, "com.shop.core");
    assert_eq!(facts.defs[DefId::new(1)].doc.as_deref(), Some("A shop."));
    assert_eq!(&*facts.defs[DefId::new(5)].signature, "def sell(item: Item, to: Buyer): Receipt");
    let imports: Vec<(&str, bool)> =
        facts.imports.iter().map(|import| (&*import.module, import.what == ImportKind::All)).collect();
    assert_eq!(
        imports,
        [
            ("scala.collection.mutable.Map", false),
            ("scala.collection.mutable.Set", false),
            ("com.kit", true),
            ("com.kit.Point", false)
        ]
    );
    assert!(facts.faults.is_empty(), "{:?}", facts.faults);
}

#[test]
fn tests_are_classes_of_suites() {
    let text = "class ShopSuite extends munit.FunSuite {\n  test(\"sells\") { val result = run(); result.show() }\n  def run() = 1\n}\n";
    let facts = facts("src/test/scala/ShopSuite.scala", text);
    assert!(facts.defs[ROOT].is(flag::TEST));
    assert_eq!(defs(&facts), ["Class ShopSuite 1 test", "Method ShopSuite.run 3"]);
}

#[test]
fn calls_within_a_file() {
    check(
        &[(
            "a.scala",
            "class Base { def log(): Unit = () }
class Shop(val buyer: Buyer) extends Base {
  def run(): Unit = { log(); this.run(); super.log(); buyer.pay() }
}
object Shop { def make(): Shop = new Shop(new Buyer()) }
class Buyer { def pay(): Unit = () }
object Main {
  def use(shop: Shop, all: List[Buyer]): Unit = {
    shop.run()
    Shop.make().run()
    for (one <- all) one.pay()
    all.foreach(_.pay())
    all.map(b => b.pay())
    val other = new Shop(all.head)
    other.log()
    shop match { case s: Shop => s.run() }
  }
}
",
        )],
        &[
            "a.scala:3 -> Base.log:1 0.98",
            "a.scala:3 -> Shop.run:3 0.98",
            "a.scala:3 -> Base.log:1 0.9",
            "a.scala:3 -> Buyer.pay:6 0.9",
            "a.scala:5 -> Buyer:6 0.98",
            "a.scala:5 -> Shop:2 0.98",
            "a.scala:9 -> Shop.run:3 0.9",
            "a.scala:10 -> Shop.make:5 0.98",
            "a.scala:10 -> Shop.run:3 0.9",
            "a.scala:11 -> Buyer.pay:6 0.9",
            "a.scala:12 -> Buyer.pay:6 0.9",
            "a.scala:13 -> Buyer.pay:6 0.9",
            "a.scala:14 -> Shop:2 0.98",
            "a.scala:15 -> Base.log:1 0.9",
            "a.scala:16 -> Shop.run:3 0.9",
        ],
    );
}

#[test]
fn calls_across_files_by_package_and_import() {
    check(
        &[
            (
                "kit/Point.scala",
                "package com.kit\nclass Point { def move(): Unit = () }\nobject Tools { def help(): Unit = () }\n",
            ),
            (
                "shop/A.scala",
                "package com.shop\nimport com.kit.Point\nimport com.kit._\nobject A { def use(p: Point): Unit = { p.move(); Tools.help(); B.near() } }\n",
            ),
            ("shop/B.scala", "package com.shop\nobject B { def near(): Unit = () }\n"),
        ],
        &[
            "shop/A.scala:4 -> kit/Point.scala Point.move:2 0.9",
            "shop/A.scala:4 -> kit/Point.scala Tools.help:3 0.95",
            "shop/A.scala:4 -> shop/B.scala B.near:2 0.95",
        ],
    );
}

#[test]
fn damaged_text_is_read_as_far_as_possible() {
    let pieces = ["{", "}", "(", ")", "\"", "case", "=>", "[", "]", "object ", "$", "@", ":"];
    let mut random = crate::lang::mutations::MutationRng::new();
    for _ in 0..200 {
        let text = random.damaged(&[SHOP], &pieces);
        assert!(!facts("a.scala", &text).defs.is_empty());
    }
    let deep = format!("object A {{ val x = {}1{} }}", "(".repeat(3_000), ")".repeat(3_000));
    assert!(!facts("a.scala", &deep).defs.is_empty());
}
