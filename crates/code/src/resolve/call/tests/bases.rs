//! Bases outside the program are reported by name.

use crate::facts::BaseKind;
use crate::languages::LanguageId;
use crate::resolve::{LinkTarget, Program, resolve};
use std::sync::Arc;

/// The bases of the classes of a file as `Class kind base`.
fn bases(path: &str, text: &str) -> Vec<String> {
    let mut program = Program::default();
    let language = LanguageId::of(path, text).expect("a path with a known extension");
    let file = program.set(path, Arc::new(crate::parse(path, text, language)));
    let links = resolve(&mut program);
    let facts = &program.file(file).facts;
    let base = |link: &crate::resolve::BaseLink| {
        let how = if link.how == BaseKind::Implements { "implements" } else { "extends" };
        let to = match link.to {
            LinkTarget::Def(to) => program.file(to.file).facts.path_of(to.def).join("."),
            LinkTarget::External(path) => program.external_text(path),
        };
        format!("{} {how} {to} {}", facts.path_of(link.class).join("."), link.line)
    };
    links[file].bases.iter().map(base).collect()
}

#[test]
fn outside_bases_are_named_with_their_package_and_line() {
    assert_eq!(
        bases(
            "a.tsx",
            "import React, { PureComponent } from 'react'\nimport * as ui from 'ui'\n\
             class A extends React.Component<Props> {}\nclass B extends PureComponent {}\n\
             class C extends ui.Box implements ui.Drawn {}\nclass E extends Error {}\nclass F extends A {}\n",
        ),
        [
            "A extends react.default.Component 3",
            "B extends react.PureComponent 4",
            "C extends ui.Box 5",
            "C implements ui.Drawn 5",
            "E extends globalThis.Error 6",
            "F extends A 7",
        ]
    );
    assert_eq!(
        bases(
            "a.py",
            "from django.db import models\nimport abc\nfrom typing import Generic\n\
             class A(models.Model): pass\nclass B(abc.ABC, Generic[int]): pass\nclass C(ValueError): pass\n",
        ),
        [
            "A extends django.db.models.Model 4",
            "B extends abc.ABC 5",
            "B extends typing.Generic 5",
            "C extends builtins.ValueError 6",
        ]
    );
    assert_eq!(
        bases(
            "A.java",
            "import java.util.AbstractList;\nclass A extends AbstractList<String> implements Runnable {}\n\
             class E extends RuntimeException {}\n",
        ),
        [
            "A extends java.util.AbstractList 2",
            "A implements java.lang.Runnable 2",
            "E extends java.lang.RuntimeException 3",
        ]
    );
    assert_eq!(
        bases("a.go", "package a\n\nimport \"sync\"\n\ntype A struct {\n\tsync.Mutex\n}\n"),
        ["A extends sync.Mutex 6"]
    );
    assert_eq!(
        bases("a.rs", "use std::fmt;\npub struct A;\nimpl fmt::Display for A { fn fmt(&self) {} }\n"),
        ["A implements std.fmt.Display 3"]
    );
}
